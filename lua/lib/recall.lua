-- recall: what one idempotency record says (F1).
-- Takes the flight's view of the records, a record's name, the payload's digest, whether the
--   journal was asked, whether it must be for a missing record: a number may be older than that.
-- Returns "new" | "ask" | "vanished" (its bucket, or the evidence whether there was one)
--   | "same", idempotency record | "other", idempotency record
local function recall(view, name, digest, asked, once)
  local slot = view.slots[name]
  if not slot then
    local key = bucket(view.list_key, name)
    local found, mark = written(key, name)
    -- The window ends for each record separately; its bucket lasts as long as the newest in it.
    if found and found.at_ms and found.at_ms <= view.oldest_ms then found = false end
    slot = {name = name, key = key, mark = mark, found = found}
    view.slots[name] = slot
  end
  local found, mark = slot.found, slot.mark
  -- Also if the journal was asked: it may not have the number yet, and will once the epoch ends.
  if not mark and expected(view, slot.key) then return 'vanished' end
  if not found then
    local is_new = asked or not once and complete(view, mark)
    return is_new and 'new' or 'ask'
  end
  if found.epoch ~= view.epoch then return asked and 'new' or 'ask' end
  return found.digest == digest and 'same' or 'other', found
end
