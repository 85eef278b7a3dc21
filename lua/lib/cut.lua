-- cut: removes the oldest entries of an outbox and lowers its count by as many (F7, F16). An empty
-- outbox is deleted: its count shows that nothing is missing, and nodes come and go.
-- Takes the owner record and outbox keys, the outbox's node, the first flight to keep.
-- Returns how many were removed
local function cut(owner_key, outbox_key, node, keep)
  -- A key of another type is not an outbox and is kept for inspection.
  if redis.call('TYPE', outbox_key).ok ~= 'stream' then return 0 end
  local count = redis.call('HGET', owner_key, 'n:' .. node)
  local removed = redis.call('XTRIM', outbox_key, 'MINID', keep .. '-0')
  -- An unreadable count is left as it is: it stays wrong and thereby shows the damage.
  if integer(count) then
    redis.call('HSET', owner_key, 'n:' .. node, decimal(integer(count) - removed))
  end
  if redis.call('XLEN', outbox_key) == 0 then redis.call('DEL', outbox_key) end
  return removed
end
