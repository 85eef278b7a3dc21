-- sweep: remove counters of epochs that were closed long ago: they are cold, whatever they hold.
-- This data set then no longer shows those epochs, so its run begins after them (F9).
-- KEYS[1] owner record          KEYS[2..] counters
-- ARGV[1] echo                  ARGV[2] epoch               ARGV[3] incarnation
-- ARGV[4] node that sweeps      ARGV[5] last epoch whose counters go
-- Returns {"swept", echo, counters removed, counters of this epoch} | {"fenced", echo, epoch, reason}
--   | {"barred", echo}
local owner_key = KEYS[1]
local echo, epoch, incarnation, node, upto = ARGV[1], ARGV[2], ARGV[3], ARGV[4], tonumber(ARGV[5])

if upto >= tonumber(epoch) then
  return redis.error_reply('ERR sweep: a counter of this epoch that goes is a counter that was lost')
end
local refusal = owned(echo, owner_key, epoch, incarnation, node)
if refusal then return refusal end

local old, present = {}, 0
for i = 2, #KEYS do
  -- A key of another type, or one that bears no epoch, is kept for inspection.
  local found = redis.pcall('HGET', KEYS[i], 'epoch')
  local born = type(found) == 'string' and integer(found)
  if found == epoch then
    present = present + 1
  elseif born and born <= upto then
    old[#old + 1] = KEYS[i]
  end
end

if #old > 0 then
  -- First: a caller that asks what this data set took must never rely on what was removed.
  local since = integer(redis.call('HGET', owner_key, 'run_since'))
  if since and since <= upto then
    redis.call('HSET', owner_key, 'run_since', decimal(upto + 1))
  end
  for _, key in ipairs(old) do redis.call('DEL', key) end
end
return {'swept', echo, decimal(#old), decimal(present)}
