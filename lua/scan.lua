-- scan: the owner of a partition by the server's record, and a page of the partition's keys on this
-- server. Checks no ownership: for the rescue of a held partition only (F9).
-- KEYS[1] owner record
-- ARGV[1] echo                  ARGV[2] cursor, "0" first   ARGV[3] pattern of the partition's keys
-- ARGV[4] keys at most, about
-- Returns {"scanned", echo, role, deployment, epoch, sealed epoch, epoch since which this data set
--   has owned every one, next cursor, keys}; '' for a field that is missing
local owner_key = KEYS[1]
local echo, cursor, pattern, limit = ARGV[1], ARGV[2], ARGV[3], ARGV[4]

local role = server()
local owner = redis.pcall('HMGET', owner_key, 'deployment', 'epoch', 'sealed_epoch', 'run_since')
if owner.err then owner = {} end
local page = redis.call('SCAN', cursor, 'MATCH', pattern, 'COUNT', limit)
return {
  'scanned', echo, role, owner[1] or '', owner[2] or '', owner[3] or '', owner[4] or '', page[1],
  page[2]
}
