-- bucket: the hash that holds an idempotency record. Many records share one, because a Redis key of
-- its own costs twice what the record does. The record's name alone determines the bucket.
-- Takes the list key, the record's name of 12 bytes.
-- Returns its key
local function bucket(list_key, name)
  local low, high = string.byte(name, 1, 2)
  -- A bucket has at most five digits.
  return string.format('%s:%d', list_key, low + 256 * (high % 128))
end
