-- viewed: what the owner record says of a partition's idempotency records, for one flight. Once a
-- minute it checks whether the server may evict them: then they are never complete (F28).
-- Takes the owner record's key, the list key, the epoch, now, the window.
-- Returns {slots = {} (by a record's name {name, key, mark, found}: its bucket's key and mark, what
--   was found there), list_key, epoch, oldest_ms, period, last_period (when they begin), mark (of a
--   bucket that has all of its records and was witnessed), complete (whether the data set has all
--   records of the window), is_of_window (whether it is kept for this window), is_lasting (whether
--   each bucket with this mark got it under this window), is_looking, may_evict (what that check
--   found), witnessed (the periods with a bitmap, as names)}
local function viewed(owner_key, list_key, epoch, now_ms, window_ms)
  local owner = redis.call(
    'HMGET', owner_key, 'continuous_since_ms', 'window_ms', 'witnessed', 'looked_ms',
    'window_since_ms'
  )
  local since_ms, window, looked_ms = integer(owner[1]), tonumber(window_ms), integer(owner[4])
  local oldest_ms, period = now_ms - window, math.floor(now_ms / window) * window
  local view = {
    slots = {}, list_key = list_key, epoch = epoch,
    oldest_ms = oldest_ms, period = period, last_period = period - window, witnessed = {},
    mark = struct.pack('>I6I6I6', 0, epoch, period),
    is_of_window = owner[2] == window_ms,
    is_lasting = owner[2] == window_ms and (integer(owner[5] or '0') or period) < period,
    is_looking = not looked_ms or looked_ms > now_ms or looked_ms + 60000 <= now_ms,
  }
  view.may_evict = view.is_looking and evicts()
  view.complete = view.is_of_window and not view.may_evict and since_ms and since_ms <= oldest_ms
  for name in string.gmatch(owner[3] or '', '%d+') do view.witnessed[name] = true end
  return view
end
