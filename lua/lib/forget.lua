-- forget: removes idempotency records, except those that have been rewritten since.
-- Takes the list key, their names of 12 bytes each, joined, and when they were written.
-- Returns nothing
local function forget(list_key, names, at_ms)
  for at = 1, #names - 11, 12 do
    local name = string.sub(names, at, at + 11)
    local key = bucket(list_key, name)
    if (written(key, name) or {}).at_ms == at_ms then
      redis.call('HDEL', key, name)
    end
  end
end
