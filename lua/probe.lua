-- probe: who serves a partition's keys, and whether it accepts what a script writes (F22).
-- KEYS[1] probe key             KEYS[2] owner record
-- ARGV[1] echo
-- Returns {"server", echo, role, master_replid, deployment of the owner record or ""}
local probe_key, owner_key, echo = KEYS[1], KEYS[2], ARGV[1]

local role, incarnation = server()
local deployment = redis.pcall('HGET', owner_key, 'deployment')
-- A record of another type names nobody; `open` replaces it (F14).
if type(deployment) ~= 'string' then deployment = '' end
-- A full memory, a missing replica or a failed save refuse a write but would answer a question.
if role == 'master' then redis.call('SET', probe_key, incarnation, 'PX', '60000') end
return {'server', echo, role, incarnation, deployment}
