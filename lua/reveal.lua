-- reveal: counters and idempotency records as stored, whatever their epoch. Checks no ownership:
-- for the rescue of a held partition only (F9).
-- KEYS[1..] counters and buckets of idempotency records
-- ARGV[1] echo                  ARGV[2..] what each key is: "counter" | "bucket"
-- Returns {"revealed", echo, answers}; an answer is {"counter", value, copy, ceiling} with '' for a
--   field that is missing, {"bucket", {epoch, values, record, …} of those kept whole}, or {"other"}
local answers = {}
for i = 1, #KEYS do
  local is_hash = redis.call('TYPE', KEYS[i]).ok == 'hash'
  if is_hash and ARGV[1 + i] == 'counter' then
    local fields = redis.call('HMGET', KEYS[i], 'value', 'check', 'ceiling')
    answers[i] = {'counter', fields[1] or '', fields[2] or '', fields[3] or ''}
  elseif is_hash then
    local whole = {}
    for _, text in ipairs(redis.call('HVALS', KEYS[i])) do
      local found = unpacked(text)
      if found.values then
        for _, part in ipairs({found.epoch, found.values, found.record}) do
          whole[#whole + 1] = part
        end
      end
    end
    answers[i] = {'bucket', whole}
  else
    answers[i] = {'other'}
  end
end
return {'revealed', ARGV[1], answers}
