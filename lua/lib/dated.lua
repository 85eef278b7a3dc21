-- dated: notes since when a partition's idempotency records are complete, where that begins anew,
-- since when they are kept for this window, and when it was looked whether the server may evict
-- them.
-- Takes the owner record's key, the flight's view of the records, now, the window.
-- Returns nothing
local function dated(owner_key, view, now_ms, window_ms)
  local now = decimal(now_ms)
  if view.is_looking then redis.call('HSET', owner_key, 'looked_ms', now) end
  -- What was marked in this epoch and before may last too short; a new epoch's record lacks this.
  if not view.is_of_window then redis.call('HSET', owner_key, 'window_since_ms', now) end
  -- What was kept for another window, or by an older program, may have gone before this one ends;
  -- what may be evicted, at any time.
  if view.may_evict or not view.is_of_window then
    redis.call('HSET', owner_key, 'window_ms', window_ms, 'continuous_since_ms', now)
  end
end
