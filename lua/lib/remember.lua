-- remember: writes idempotency records and keeps them below a bound: the oldest go (F21).
-- The partition's list names the records in the order of their writing, one element per flight:
-- `<ordinal of its first record> <of its last> <when, ms> <keys, a JSON list>`.
-- Takes the owner record and list keys, the records by key, the keys to write, now, the window,
-- the bound.
-- Returns how many older records went before their time
local function remember(owner_key, list_key, records, noted, now_ms, window_ms, most)
  local names = {}
  for key in pairs(noted) do
    redis.call('SET', key, records[key], 'PX', window_ms)
    names[#names + 1] = key
  end
  if #names == 0 then return 0 end

  local newest = redis.pcall('LINDEX', list_key, -1)
  -- Whatever else stands there names nothing: its records go by their time alone.
  if type(newest) == 'table' then redis.call('DEL', list_key) end
  local before = integer(type(newest) == 'string' and string.match(newest, '^%d+ (%d+) ')) or 0
  local last = before + #names
  local element = {decimal(before + 1), decimal(last), decimal(now_ms), cjson.encode(names)}
  redis.call('RPUSH', list_key, table.concat(element, ' '))

  -- Twice as many may go as came, so that it gets below a bound that was lowered, by and by.
  local shed, gone = 0, 0
  while gone < 2 * #names + 2 do
    local oldest = redis.call('LINDEX', list_key, 0)
    if not oldest then break end
    local first, upto, at_ms, list = string.match(oldest, '^(%d+) (%d+) (%d+) (.*)$')
    local left_ms = first and tonumber(at_ms) + tonumber(window_ms) - now_ms or 0
    if left_ms > 0 and last - tonumber(first) < most then break end
    redis.call('LPOP', list_key)
    gone = gone + (first and tonumber(upto) - tonumber(first) + 1 or 1)
    -- What is older than the window goes by itself.
    if left_ms > 0 then
      -- Read only when it goes: the oldest is looked at with every flight.
      pcall(function() forget(cjson.decode(list), left_ms) end)
      shed = shed + tonumber(upto) - tonumber(first) + 1
      now_ms = math.max(now_ms, tonumber(at_ms))
    end
  end
  if shed > 0 then
    -- From now on a missing record is no news: it may be one of those (F1).
    local since_ms = integer(redis.call('HGET', owner_key, 'continuous_since_ms')) or now_ms
    since_ms = decimal(math.max(since_ms, now_ms))
    redis.call('HSET', owner_key, 'continuous_since_ms', since_ms)
  end
  return shed
end
