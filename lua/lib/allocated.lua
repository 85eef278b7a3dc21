-- allocated: answers with the allocation that an idempotency record stands for. Until it is
-- journaled it stands in the outbox of the node that took it; trimmed means journaled (F16).
-- Takes the flight's view of the records, the answer's word, an idempotency record of its epoch.
-- Returns {word, values, record} | {"journaled"}: the journal has it
local function allocated(view, word, found)
  if found.values then return {word, found.values, found.record} end
  local id = found.flight .. '-0'
  local entries = redis.pcall('XRANGE', view.outboxes .. found.node, id, id)
  local fields = entries[1] and entries[1][2] or {}
  for i = 1, #fields, 2 do
    if fields[i] == found.place then
      local values, record = string.match(fields[i + 1], '^%a+ (%S+) (.*)$')
      if values then return {word, values, record} end
    end
  end
  -- Also when the journal was asked before: it has the number by now, and must never be passed.
  return {'journaled'}
end
