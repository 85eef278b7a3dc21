-- peek: a page of a node's outbox as it stands, whatever its epoch. Checks no ownership: for the
-- rescue of a held partition only (F9).
-- KEYS[1] outbox of a node
-- ARGV[1] echo                  ARGV[2] first flight to read
-- ARGV[3] entries at most
-- Returns {"peeked", echo, entries}; an entry is {id, {field, text, …}}
local outbox_key, echo, from, limit = KEYS[1], ARGV[1], ARGV[2], ARGV[3]

if redis.call('TYPE', outbox_key).ok ~= 'stream' then return {'peeked', echo, {}} end
return {'peeked', echo, redis.call('XRANGE', outbox_key, from .. '-0', '+', 'COUNT', limit)}
