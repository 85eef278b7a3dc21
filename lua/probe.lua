-- probe: which server serves a partition's keys, and whether it accepts writes of a script (F22).
-- KEYS[1] probe key             KEYS[2] owner record
-- ARGV[1] echo
-- Returns {"server", echo, role, master_replid, and of the owner record, each or "": deployment,
--   continuous_since_ms, window_ms}
local probe_key, owner_key, echo = KEYS[1], KEYS[2], ARGV[1]

local role, incarnation = server()
local owner = redis.pcall('HMGET', owner_key, 'deployment', 'continuous_since_ms', 'window_ms')
-- A record of another type names no owner; `open` replaces it (F14).
if owner.err then owner = {} end
-- A full memory, a missing replica or a failed save would refuse a write but answer a read.
if role == 'master' then redis.call('SET', probe_key, incarnation, 'PX', '60000') end
return {'server', echo, role, incarnation, owner[1] or '', owner[2] or '', owner[3] or ''}
