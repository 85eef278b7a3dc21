-- open: make this server the owner of a partition for a new epoch (F6). Sent once.
-- KEYS[1] owner record
-- ARGV[1] echo                  ARGV[2] epoch to open       ARGV[3] incarnation
-- ARGV[4] deployment            ARGV[5] epoch just closed   ARGV[6] '' or now, ms
-- ARGV[7] "1": no number was ever issued in this partition
-- ARGV[8] idempotency window, ms
-- Returns {"opened", echo} | {"newer", echo, epoch} | {"foreign", echo, deployment}
--   | {"unfit", echo, reason}
local owner_key = KEYS[1]
local echo, epoch, incarnation = ARGV[1], ARGV[2], ARGV[3]
local deployment, closed, pristine = ARGV[4], ARGV[5], ARGV[7] == '1'
local window_ms = ARGV[8]
local now_ms = decimal(clock(ARGV[6]))

local role, shown = server()
if role ~= 'master' then return {'unfit', echo, 'role is ' .. role} end
-- Servers that only imitate Redis show no id, or a constant one (F24).
if #shown ~= 40 or not string.match(shown, '^%x+$') or string.match(shown, '^0+$') then
  return {'unfit', echo, 'unusable master_replid ' .. shown}
end
if shown ~= incarnation then return {'unfit', echo, 'server shows ' .. shown} end

local owner = redis.pcall(
  'HMGET', owner_key, 'deployment', 'epoch', 'incarnation', 'continuous_since_ms', 'window_ms',
  'witnessed', 'run_since', 'sealed_epoch', 'confirmed'
)
if owner.err then owner = {} end
if owner[1] and owner[1] ~= deployment then return {'foreign', echo, owner[1]} end
local before = integer(owner[2])
if before and before >= tonumber(epoch) then return {'newer', echo, owner[2]} end

-- The same data set ran through the closed epoch: it still has all that it had. A sealed epoch was
-- not its own (F9).
local goes_on = owner[2] == closed and owner[3] == incarnation and not owner[8]
-- Idempotency records are complete since then, if they were kept for as long. An epoch ended
-- because records vanished is not named as closed: what should exist is recorded anew (F28).
local since_ms, witnessed = now_ms, ''
if pristine then
  since_ms = '0'
elseif goes_on and owner[5] == window_ms and integer(owner[4]) then
  since_ms, witnessed = owner[4], owner[6] or ''
end
-- Every number since this epoch was taken here: the answer to how far a counter came (F9).
local run_since = goes_on and integer(owner[7]) and owner[7] or epoch

-- The old record is deleted with the fields of all nodes, whatever its type is (F14).
redis.call('DEL', owner_key)
redis.call(
  'HSET', owner_key, 'epoch', epoch, 'incarnation', incarnation, 'deployment', deployment,
  'opened_at_ms', now_ms, 'continuous_since_ms', since_ms, 'window_ms', window_ms,
  'witnessed', witnessed, 'run_since', run_since
)
-- What the ledger confirmed stays confirmed.
if owner[9] then redis.call('HSET', owner_key, 'confirmed', owner[9]) end
return {'opened', echo}
