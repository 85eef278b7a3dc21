-- bucket: the hash that holds an idempotency record: many share one, for a key of Redis alone costs
-- twice what the record does. Which one follows from the record's name and never changes.
-- Takes the list key, the record's name of 12 bytes.
-- Returns its key
local function bucket(list_key, name)
  local low, high = string.byte(name, 1, 2)
  -- A bucket has five digits at most.
  return string.format('%s:%d', list_key, low + 256 * (high % 128))
end
