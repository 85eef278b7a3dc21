-- peek: read a page of an outbox whatever the epoch is. Reads only: for people. A node that adopts
-- an outbox bars its owner first and reads it by read_outbox (F7).
-- KEYS[1] outbox
-- ARGV[1] echo                  ARGV[2] first flight to read  ARGV[3] entries at most
-- Returns {"entries", echo, entries}; an entry is {id, {field, text, …}}
local outbox_key, echo, from, limit = KEYS[1], ARGV[1], ARGV[2], ARGV[3]

local entries = redis.pcall('XRANGE', outbox_key, from .. '-0', '+', 'COUNT', limit)
-- A key of another type holds no entries.
if entries.err then entries = {} end
return {'entries', echo, entries}
