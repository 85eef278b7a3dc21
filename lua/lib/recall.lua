-- recall: what one idempotency record says (F1).
-- Takes the flight's view of the records, a record's name, the payload's digest, whether the
--   journal was asked, whether it must be for what has no record: a number may be older than that.
-- Returns "new" | "ask" | "vanished" (its bucket, or what would tell whether there was one)
--   | "same", idempotency record | "other", idempotency record
local function recall(view, name, digest, asked, once)
  local found = view.records[name]
  if found == nil then
    local key = bucket(view.list_key, name)
    view.buckets[name] = key
    found, view.marks[key] = written(key, name)
    -- The window ends for each record by itself; its bucket lasts as long as the newest in it.
    if found and found.at_ms and found.at_ms <= view.oldest_ms then found = false end
    view.records[name] = found
  end
  local mark = view.marks[view.buckets[name]]
  -- Also when the journal was asked: it may not have the number yet, and will once the epoch ends.
  if not mark and expected(view, view.buckets[name]) then return 'vanished' end
  if not found then
    local is_new = asked or not once and complete(view, mark)
    return is_new and 'new' or 'ask'
  end
  if found.epoch ~= view.epoch then return asked and 'new' or 'ask' end
  return found.digest == digest and 'same' or 'other', found
end
