-- trim: remove the caller's own outbox entries that are journaled, and record what the ledger
-- confirmed to it. Safe to repeat.
-- KEYS[1] owner record          KEYS[2] outbox of the node
-- ARGV[1] echo                  ARGV[2] epoch               ARGV[3] incarnation
-- ARGV[4] node                  ARGV[5] first flight to keep
-- ARGV[6] '' or what the ledger confirmed to the node, compared when it is next opened (F25)
-- Returns {"trimmed", echo, entries removed} | {"fenced", echo, epoch, reason} | {"barred", echo}
local owner_key, outbox_key = KEYS[1], KEYS[2]
local echo, epoch, incarnation, node, keep = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local confirmed = ARGV[6]

-- A barred node's outbox belongs to the node that adopts it (F7).
local refusal = owned(echo, owner_key, epoch, incarnation, node)
if refusal then return refusal end
if confirmed ~= '' then redis.call('HSET', owner_key, 'confirmed', confirmed) end
return {'trimmed', echo, decimal(cut(owner_key, outbox_key, node, keep))}
