-- probe: who serves a partition's keys, and whether it accepts what a script writes (F22).
-- KEYS[1] probe key
-- ARGV[1] echo
-- Returns {"server", echo, role, master_replid}
local probe_key, echo = KEYS[1], ARGV[1]

local role, incarnation = server()
-- A full memory, a missing replica or a failed save refuse a write but would answer a question.
if role == 'master' then redis.call('SET', probe_key, incarnation, 'PX', '60000') end
return {'server', echo, role, incarnation}
