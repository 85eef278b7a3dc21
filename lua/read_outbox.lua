-- read_outbox: read a page of a barred node's outbox and say whether the outbox is whole (F7).
-- KEYS[1] owner record          KEYS[2] outbox of the barred node
-- ARGV[1] echo                  ARGV[2] epoch               ARGV[3] incarnation
-- ARGV[4] node that reads       ARGV[5] barred node         ARGV[6] first flight to read
-- ARGV[7] entries at most
-- Returns {"entries", echo, "whole" | "partial", entries} | {"fenced", echo, epoch, reason}
--   | {"barred", echo} (the caller itself); an entry is {id, {field, text, …}}
local owner_key, outbox_key = KEYS[1], KEYS[2]
local echo, epoch, incarnation, node = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local dead, from, limit = ARGV[5], ARGV[6], ARGV[7]

local refusal = owned(echo, owner_key, epoch, incarnation, node)
if refusal then return refusal end
local fields = redis.call('HMGET', owner_key, 'b:' .. dead, 'f:' .. dead, 'n:' .. dead)
if not fields[1] then return {'fenced', echo, epoch, 'node is not barred'} end

local held = redis.pcall('XLEN', outbox_key)
if type(held) ~= 'number' then return {'entries', echo, 'partial', {}} end
-- Count and flight number are written together. Without both the node has sent nothing in this
-- epoch: its outbox can hold earlier epochs' entries only, and nothing of this epoch is missing.
local whole = integer(fields[3]) == held
if not fields[3] then whole = not fields[2] end
local entries = redis.call('XRANGE', outbox_key, from .. '-0', '+', 'COUNT', limit)
return {'entries', echo, whole and 'whole' or 'partial', entries}
