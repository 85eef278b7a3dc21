-- limit: adds what a node admitted to shared limits, and returns how far ahead of now each is.
-- KEYS[1..] schedules
-- ARGV[1] echo                  ARGV[2..] microseconds admitted under each key
-- Returns {"shared", echo, microseconds ahead of now under each key ...}
local now = redis.call('TIME')
local now_us = 1000000 * tonumber(now[1]) + tonumber(now[2])
local ahead_max_us = 120000000
local answer = {'shared', ARGV[1]}
for i = 1, #KEYS do
  local key = KEYS[i]
  local kept = redis.pcall('GETRANGE', key, '0', '-1')
  -- A key of another type is not a schedule and is overwritten.
  local at_us = type(kept) == 'string' and integer(kept) or 0
  local ahead_us = math.max(at_us - now_us, 0) + (integer(ARGV[1 + i]) or 0)
  ahead_us = math.min(ahead_us, ahead_max_us)
  if ahead_us > 0 then
    redis.call('SET', key, decimal(now_us + ahead_us), 'PX', decimal(math.ceil(ahead_us / 1000)))
  end
  answer[2 + i] = decimal(ahead_us)
end
return answer
