-- seal: end every epoch of a held partition on this server, so that no number of it is taken while
-- its counters are read (F9). Only `open` of a higher epoch ends the seal.
-- KEYS[1] owner record
-- ARGV[1] echo                  ARGV[2] deployment          ARGV[3] epoch above all others
-- Returns {"sealed", echo} | {"foreign", echo, deployment} | {"unfit", echo, reason}
local owner_key, echo, deployment, epoch = KEYS[1], ARGV[1], ARGV[2], ARGV[3]

local role = server()
if role ~= 'master' then return {'unfit', echo, 'role is ' .. role} end
local owner = redis.pcall('HMGET', owner_key, 'deployment', 'epoch', 'sealed_epoch')
-- Without an owner record every script is already fenced.
if owner.err or not owner[2] then return {'sealed', echo} end
if owner[1] ~= deployment then return {'foreign', echo, owner[1] or ''} end
local before = integer(owner[2])
if before and before >= tonumber(epoch) then
  return {'unfit', echo, 'the owner record shows epoch ' .. owner[2]}
end
-- The epoch that took the numbers remains known, and since when, however often this is repeated.
redis.call('HSET', owner_key, 'epoch', epoch, 'sealed_epoch', owner[3] or owner[2])
-- No number of this epoch has a record here, and there may be other epochs between: what opens the
-- next one must not take the records for complete.
redis.call('HDEL', owner_key, 'continuous_since_ms')
return {'sealed', echo}
