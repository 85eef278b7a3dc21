-- bar: keep a silent node from writing in this epoch, before its outbox is read (F7).
-- KEYS[1] owner record
-- ARGV[1] echo                  ARGV[2] epoch               ARGV[3] incarnation
-- ARGV[4] node that bars        ARGV[5] node to bar
-- Returns {"done", echo} | {"fenced", echo, epoch, reason} | {"barred", echo} (the caller itself)
local owner_key = KEYS[1]
local echo, epoch, incarnation, node, dead = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]

local refusal = owned(echo, owner_key, epoch, incarnation, node)
if refusal then return refusal end
redis.call('HSET', owner_key, 'b:' .. dead, '1')
return {'done', echo}
