-- remember: writes idempotency records and keeps their number below a bound: the oldest are removed
-- (F21). A record says where its allocation is, in 44 bytes: epoch (6), when (6), node (16), flight
-- (6), place in it (2), first half of the payload's digest (8); in whole records `values record`
-- follow. The partition's list names the records in the order of writing, one element per flight:
-- `<ordinal of its first record> <of its last> <when, ms> <names of 12 bytes, joined>`.
-- Takes the owner record's key, the node, the flight, its view of the records, the slots to write,
--   now, the window, the bound, whether records are kept whole.
-- Returns how many older records were removed before their time
local function remember(owner_key, node, flight, view, noted, now_ms, window_ms, most, whole)
  if #noted == 0 then return 0 end
  local list_key, names, own = view.list_key, {}, headed(view.epoch, now_ms, node, flight)
  for i = 1, #noted do
    local slot = noted[i]
    local key, found = slot.key, slot.found
    -- A slot noted twice in a flight is written once, in its latest state.
    if key then
      slot.key = nil
      local head = found.node and headed(found.epoch, now_ms, found.node, found.flight) or own
      local text = struct.pack('>c34I2c8', head, found.place, found.digest)
      if whole and found.values then
        text = text .. table.concat(allocated(view, found.values, found), ' ', 2)
      end
      local is_witnessed = slot.mark == view.mark
      local mark = not is_witnessed and attest(owner_key, view, key, slot.mark, window_ms)
      -- A key of another type holds no records.
      if type(redis.pcall('HSET', key, slot.name, text)) == 'table' then
        redis.call('DEL', key)
        redis.call('HSET', key, slot.name, text)
      end
      -- The bucket must last until the next period is over: until then it is expected to exist. A
      -- bucket that bears this period's mark had its expiry extended before it got the mark.
      if not (is_witnessed and view.is_lasting) and redis.call('PTTL', key) < 2 * window_ms then
        redis.call('PEXPIRE', key, 3 * window_ms)
      end
      if mark then redis.call('HSET', key, '', mark) end
      names[#names + 1] = slot.name
    end
  end

  local newest = redis.pcall('LINDEX', list_key, -1)
  -- A key of another type names nothing: the records it should name expire with their buckets,
  -- after three windows without a write. Only a write from outside leads here.
  if type(newest) == 'table' then redis.call('DEL', list_key) end
  local before = integer(type(newest) == 'string' and string.match(newest, '^%d+ (%d+) ')) or 0
  local last = before + #names
  local element = {decimal(before + 1), decimal(last), decimal(now_ms), table.concat(names)}
  redis.call('RPUSH', list_key, table.concat(element, ' '))
  -- Never before a bucket: a record in no list would stay for as long as its bucket is written to.
  if redis.call('PTTL', list_key) < 3 * window_ms then
    redis.call('PEXPIRE', list_key, 4 * window_ms)
  end

  -- Up to twice as many are removed as were added, so that a lowered bound is reached gradually.
  local shed, gone = 0, 0
  while gone < 2 * #names + 2 do
    local oldest = redis.call('LINDEX', list_key, 0)
    if not oldest then break end
    local first, upto, at_ms, list = string.match(oldest, '^(%d+) (%d+) (%d+) ()')
    local left_ms = first and tonumber(at_ms) + tonumber(window_ms) - now_ms or 0
    if left_ms > 0 and last - tonumber(first) < most then break end
    redis.call('LPOP', list_key)
    gone = gone + (first and tonumber(upto) - tonumber(first) + 1 or 1)
    if first then forget(list_key, string.sub(oldest, list), tonumber(at_ms)) end
    if left_ms > 0 then
      shed = shed + tonumber(upto) - tonumber(first) + 1
      now_ms = math.max(now_ms, tonumber(at_ms))
    end
  end
  if shed > 0 then
    -- From now on a missing record does not mean a new request: it may be one of those (F1).
    local since_ms = integer(redis.call('HGET', owner_key, 'continuous_since_ms')) or now_ms
    since_ms = decimal(math.max(since_ms, now_ms))
    redis.call('HSET', owner_key, 'continuous_since_ms', since_ms)
  end
  return shed
end
