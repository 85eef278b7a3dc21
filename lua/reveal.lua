-- reveal: counters and idempotency records as they stand, whatever their epoch. Checks no
-- ownership: for the rescue of a held partition only (F9).
-- KEYS[1..] counters and idempotency records
-- ARGV[1] echo
-- Returns {"revealed", echo, answers}; an answer is {"counter", value, copy, ceiling} with '' for a
--   field that is missing, {"record", text}, or {"other"}
local answers = {}
for i = 1, #KEYS do
  local kind = redis.call('TYPE', KEYS[i]).ok
  if kind == 'hash' then
    local fields = redis.call('HMGET', KEYS[i], 'value', 'check', 'ceiling')
    answers[i] = {'counter', fields[1] or '', fields[2] or '', fields[3] or ''}
  elseif kind == 'string' then
    answers[i] = {'record', redis.call('GET', KEYS[i])}
  else
    answers[i] = {'other'}
  end
end
return {'revealed', ARGV[1], answers}
