-- raise: lift counters' ceilings after the ledger has recorded them. Never lowers one.
-- KEYS[1] owner record          KEYS[2] outbox of the node  KEYS[3..] counters
-- ARGV[1] echo                  ARGV[2] epoch               ARGV[3] incarnation
-- ARGV[4] node                  ARGV[5] flight number       ARGV[6] last confirmed flight
-- ARGV[7] digest of the flight  ARGV[8] a JSON list of new ceilings, one per counter
-- Returns {"raised", echo, answers} | {"fenced", echo, epoch, reason} | {"barred", echo}
--   | {"late", echo} | {"mismatch", echo} | {"miscounted", echo}; an answer is
--   {"ceiling", ceiling in force} | {"cold"} | {"regressed"}
local owner_key, outbox_key = KEYS[1], KEYS[2]
local echo, epoch, incarnation, node = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local flight, confirmed, digest = ARGV[5], ARGV[6], ARGV[7]
local wishes = cjson.decode(ARGV[8])

for _, wish in ipairs(wishes) do
  if not integer(wish) then return redis.error_reply('ERR raise: a ceiling must be whole') end
end

local refusal, executed, held = guard(
  echo, owner_key, outbox_key, epoch, incarnation, node, flight, confirmed, digest
)
if refusal then return refusal end

local answers, planned = {}, {}
for i, wish in ipairs(wishes) do
  local key = KEYS[2 + i]
  local state, _, ceiling = counter(key, epoch)
  if state == 'warm' then
    -- A repeated call only answers the state: what was raised then may have been raised further.
    if not executed then
      ceiling = math.max(ceiling, planned[key] or ceiling, integer(wish))
      planned[key] = ceiling
    end
    answers[i] = {'ceiling', decimal(ceiling)}
  else
    answers[i] = {state}
  end
end
if executed then return {'raised', echo, answers} end

redis.call(
  'HSET', owner_key, 'f:' .. node, flight, 'd:' .. node, digest, 'n:' .. node, decimal(held)
)
for key, ceiling in pairs(planned) do
  redis.call('HSET', key, 'ceiling', decimal(ceiling))
end
return {'raised', echo, answers}
