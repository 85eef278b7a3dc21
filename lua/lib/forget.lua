-- forget: removes idempotency records, but those that were written anew since: they last longer.
-- Takes their keys, and how long they should have had left.
-- Returns nothing
local function forget(keys, left_ms)
  for _, key in ipairs(keys) do
    if redis.call('PTTL', key) <= left_ms + 1000 then redis.call('UNLINK', key) end
  end
end
