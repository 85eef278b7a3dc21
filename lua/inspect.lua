-- inspect: the state of counters in the epoch named. Reads only.
-- KEYS[1] owner record          KEYS[2..] counters
-- ARGV[1] echo                  ARGV[2] epoch               ARGV[3] incarnation
-- Returns {"inspected", echo, counters} | {"fenced", echo, epoch, reason}; a counter is
--   {"warm", value, ceiling, id} | {"cold"} | {"regressed"}
local owner_key, echo, epoch, incarnation = KEYS[1], ARGV[1], ARGV[2], ARGV[3]

-- No node is barred under an empty name: a caller that only reads is not a node.
local refusal = owned(echo, owner_key, epoch, incarnation, '')
if refusal then return refusal end

local counters = {}
for i = 2, #KEYS do
  local state, value, ceiling, id = counter(KEYS[i], epoch)
  counters[i - 1] = {state}
  if state == 'warm' then
    counters[i - 1] = {state, decimal(value), decimal(ceiling), id}
  end
end
return {'inspected', echo, counters}
