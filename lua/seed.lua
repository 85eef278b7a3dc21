-- seed: write counters that the ledger has just seeded; one that is warm in this epoch stays.
-- KEYS[1] owner record          KEYS[2] outbox of the node  KEYS[3..] counters
-- ARGV[1] echo                  ARGV[2] epoch               ARGV[3] incarnation
-- ARGV[4] node                  ARGV[5] flight number       ARGV[6] last confirmed flight
-- ARGV[7] digest of the flight  ARGV[8] a JSON list of {id, value, ceiling}, one per counter
-- Returns {"seeded", echo, states} | {"fenced", echo, epoch, reason} | {"barred", echo}
--   | {"late", echo} | {"mismatch", echo} | {"miscounted", echo}; a state is "seeded" | "warm";
--   sent again, a counter that is there is "warm" and one that is gone was "seeded"
local owner_key, outbox_key = KEYS[1], KEYS[2]
local echo, epoch, incarnation, node = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local flight, confirmed, digest = ARGV[5], ARGV[6], ARGV[7]
local places = cjson.decode(ARGV[8])

for _, place in ipairs(places) do
  local value, ceiling = integer(place.value), integer(place.ceiling)
  if not value or not ceiling or value > ceiling then
    return redis.error_reply('ERR seed: a value must be whole and not above its ceiling')
  end
end

local refusal, executed, held = guard(
  echo, owner_key, outbox_key, epoch, incarnation, node, flight, confirmed, digest
)
if refusal then return refusal end

local states, planned = {}, {}
for i, place in ipairs(places) do
  local key = KEYS[2 + i]
  if planned[key] or redis.pcall('HGET', key, 'epoch') == epoch then
    states[i] = 'warm'
  else
    states[i], planned[key] = 'seeded', place
  end
end
if executed then return {'seeded', echo, states} end

-- First, because a full memory refuses it, but would admit a DEL and all writes after it.
redis.call(
  'HSET', owner_key, 'f:' .. node, flight, 'd:' .. node, digest, 'n:' .. node, decimal(held)
)
for key, place in pairs(planned) do
  redis.call('DEL', key)
  redis.call(
    'HSET', key, 'epoch', epoch, 'value', place.value, 'check', place.value,
    'ceiling', place.ceiling, 'id', place.id
  )
end
return {'seeded', echo, states}
