-- drop_outbox: remove a barred node's entries that are journaled; the stream goes when it is empty.
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
local removed = cut(owner_key, outbox_key, dead, keep)
-- A key of another type is not an outbox and stays for whoever looks into it.
if redis.call('TYPE', outbox_key).ok == 'stream' and redis.call('XLEN', outbox_key) == 0 then
  redis.call('DEL', outbox_key)
end
return {'trimmed', echo, decimal(removed)}
