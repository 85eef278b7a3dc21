-- drop_outbox: remove a barred node's entries that are journaled.
-- KEYS[1] owner record          KEYS[2] outbox of the barred node
-- ARGV[1] echo                  ARGV[2] epoch               ARGV[3] incarnation
-- ARGV[4] node that drops       ARGV[5] barred node         ARGV[6] first flight to keep
-- Returns {"trimmed", echo, entries removed} | {"fenced", echo, epoch, reason}
--   | {"barred", echo} (the caller itself)
local owner_key, outbox_key = KEYS[1], KEYS[2]
local echo, epoch, incarnation, node = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local dead, keep = ARGV[5], ARGV[6]

local refusal = owned(echo, owner_key, epoch, incarnation, node)
if refusal then return refusal end
if not redis.call('HGET', owner_key, 'b:' .. dead) then
  return {'fenced', echo, epoch, 'node is not barred'}
end
return {'trimmed', echo, decimal(cut(owner_key, outbox_key, dead, keep))}
