-- settle: the outcome of a flight whose outcome is unknown, once its epoch ends (F17).
-- KEYS[1] owner record          KEYS[2] outbox of the node
-- ARGV[1] echo                  ARGV[2] epoch               ARGV[3] node
-- ARGV[4] flight number         ARGV[5] digest of the flight
-- ARGV[6] requests in the flight
-- Returns {"executed", echo, outcomes} | {"spent", echo} (not executed, and never will be)
--   | {"fenced", echo, epoch, reason}; outcomes are those of lib/completed
local owner_key, outbox_key = KEYS[1], KEYS[2]
local echo, epoch, node, flight, digest = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]

-- The data set may have changed its id since (a first replica came): an entry with this digest is
-- proof enough, because the flight that took its numbers had checked the ownership.
local role = server()
if role ~= 'master' then return {'fenced', echo, '', 'server is not a master'} end
local owner = redis.pcall('HMGET', owner_key, 'epoch', 'f:' .. node, 'd:' .. node, 'n:' .. node)
if owner.err then return {'fenced', echo, '', 'owner record is not a hash'} end
if owner[1] ~= epoch then return {'fenced', echo, owner[1] or '', 'epoch differs'} end
local last = integer(owner[2] or '0')
if not last or last > tonumber(flight) then
  return {'fenced', echo, epoch, 'last flight is ' .. (owner[2] or 'missing')}
end
local held = redis.pcall('XLEN', outbox_key)
if type(held) ~= 'number' or owner[2] and integer(owner[4]) ~= held then
  return {'fenced', echo, epoch, 'the outbox does not hold what it should'}
end
if last < tonumber(flight) then
  redis.call(
    'HSET', owner_key, 'f:' .. node, flight, 'd:' .. node, 'spent', 'n:' .. node, decimal(held)
  )
  return {'spent', echo}
end

-- Executed, or settled before. No entry and a correct count: it took nothing (F15).
if owner[3] == 'spent' then return {'spent', echo} end
if owner[3] ~= digest then return {'fenced', echo, epoch, 'flight has another digest'} end
return {'executed', echo, completed(outbox_key, flight, tonumber(ARGV[6]))}
