-- remember: writes idempotency records and keeps them below a bound: the oldest go (F21).
-- A record says where its allocation stands, in 44 bytes: epoch (6), when (6), node (16), flight
-- (6), place in it (2), first half of the payload's digest (8); whole records have `values record`
-- behind it. The partition's list names the records in the order of their writing, one element per
-- flight: `<ordinal of its first record> <of its last> <when, ms> <names of 12 bytes, joined>`.
-- Takes the owner record's key, the flight's view of the records, the names to write, now, the
--   window, the bound, whether records are kept whole.
-- Returns how many older records went before their time
local function remember(owner_key, view, noted, now_ms, window_ms, most, whole)
  local list_key, names, nodes = view.list_key, {}, {}
  for name in pairs(noted) do
    local found = view.records[name]
    local node = nodes[found.node]
    if not node then
      local function part(at) return tonumber(string.sub(found.node, at, at + 7), 16) end
      node = struct.pack('>I4I4I4I4', part(1), part(9), part(17), part(25))
      nodes[found.node] = node
    end
    local text = struct.pack(
      '>I6I6c16I6I2c8', found.epoch, now_ms, node, found.flight, found.place, found.digest
    )
    if whole and found.values then
      text = text .. table.concat(allocated(view, found.values, found), ' ', 2)
    end
    local key = view.buckets[name]
    local mark = view.marks[key] ~= view.mark and attest(owner_key, view, key, window_ms)
    -- Whatever else stands there is no record.
    if type(redis.pcall('HSET', key, name, text)) == 'table' then
      redis.call('DEL', key)
      redis.call('HSET', key, name, text)
    end
    if mark then redis.call('HSET', key, '', mark) end
    -- Not before the period after this one is over: until then it is expected to be there. And put
    -- off once in a window, not with each record.
    if redis.call('PTTL', key) < 2 * window_ms then
      redis.call('PEXPIRE', key, 3 * window_ms)
    end
    names[#names + 1] = name
  end
  if #names == 0 then return 0 end

  local newest = redis.pcall('LINDEX', list_key, -1)
  -- Whatever else stands there names nothing: its records go with their buckets, in which nobody
  -- may write for three windows. Only a hand from outside leads here.
  if type(newest) == 'table' then redis.call('DEL', list_key) end
  local before = integer(type(newest) == 'string' and string.match(newest, '^%d+ (%d+) ')) or 0
  local last = before + #names
  local element = {decimal(before + 1), decimal(last), decimal(now_ms), table.concat(names)}
  redis.call('RPUSH', list_key, table.concat(element, ' '))
  -- Never before a bucket: what no list names would stay for as long as its bucket is written to.
  if redis.call('PTTL', list_key) < 3 * window_ms then
    redis.call('PEXPIRE', list_key, 4 * window_ms)
  end

  -- Twice as many may go as came, so that it gets below a bound that was lowered, by and by.
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
    -- From now on a missing record is no news: it may be one of those (F1).
    local since_ms = integer(redis.call('HGET', owner_key, 'continuous_since_ms')) or now_ms
    since_ms = decimal(math.max(since_ms, now_ms))
    redis.call('HSET', owner_key, 'continuous_since_ms', since_ms)
  end
  return shed
end
