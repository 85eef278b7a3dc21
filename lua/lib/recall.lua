-- recall: what one idempotency record says (F1).
-- Takes the records read so far by key, the key, the epoch, the payload's digest, whether the
-- journal was asked, whether this data set is older than the window (a missing record is new then).
-- Returns "new" | "ask" | "same", values, record | "other", values, record
local function recall(records, key, epoch, digest, asked, complete)
  if records[key] == nil then
    local text = redis.pcall('GET', key)
    -- A key of another type is not an answer, but neither is it missing.
    records[key] = type(text) == 'table' and '' or text
  end
  if not records[key] then return (asked or complete) and 'new' or 'ask' end
  local at, hash, values, record = string.match(records[key], '^(%d+) (%S+) (%S+) (.*)$')
  if at ~= epoch then return asked and 'new' or 'ask' end
  return hash == digest and 'same' or 'other', values, record
end
