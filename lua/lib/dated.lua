-- dated: records since when a partition's idempotency records are complete if that begins anew,
-- since when they are kept for this window, and when the server was last checked for eviction.
-- Takes the owner record's key, the flight's view of the records, now, the window.
-- Returns nothing
local function dated(owner_key, view, now_ms, window_ms)
  local now = decimal(now_ms)
  if view.is_looking then redis.call('HSET', owner_key, 'looked_ms', now) end
  -- A bucket marked in this epoch until now may expire too early; a new epoch lacks this field.
  if not view.is_of_window then redis.call('HSET', owner_key, 'window_since_ms', now) end
  -- Records kept for another window, or by an older program, may expire before this one ends; with
  -- eviction, a record may vanish at any time.
  if view.may_evict or not view.is_of_window then
    redis.call('HSET', owner_key, 'window_ms', window_ms, 'continuous_since_ms', now)
  end
end
