-- allocated: answers with the allocation that an idempotency record refers to. Until it is
-- journaled it is in the outbox of the node that took it; trimmed means journaled (F16).
-- Takes the flight's view of the records, the answer's word, an idempotency record of its epoch.
-- Returns {word, values, record} | {"journaled"}: the journal has it
local function allocated(view, word, found)
  if found.values then
    if not found.record then
      view.lines = view.lines or lines(view.texts)
      found.record = view.lines[tonumber(found.place)]
    end
    return {word, found.values, found.record}
  end
  local id = found.flight .. '-0'
  local entries = redis.pcall('XRANGE', view.outboxes .. found.node, id, id)
  local fields = entries[1] and entries[1][2] or {}
  local taken, texts = '', ''
  for i = 1, #fields, 2 do
    if fields[i] == 'taken' then taken = fields[i + 1] end
    if fields[i] == 'records' then texts = fields[i + 1] end
  end
  local values = string.match('\n' .. taken, '\n' .. found.place .. ' (%S+)')
  local record = values and lines(texts)[tonumber(found.place)]
  if record then return {word, values, record} end
  -- Also if the journal was asked before: it has the number by now and must never be bypassed.
  return {'journaled'}
end
