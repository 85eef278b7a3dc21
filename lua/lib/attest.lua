-- attest: records that a bucket is written to in this period (lib/witness): once in an epoch, which
-- may have begun without its witnesses.
-- Takes the owner record's key, the flight's view of the records, the bucket's key and mark, the
--   window.
-- Returns the bucket's new mark | nil, if it stays as it is
local function attest(owner_key, view, key, mark, window_ms)
  local since_ms = 0
  if mark and #mark == 18 then
    if string.sub(mark, 7) == string.sub(view.mark, 7) then return nil end
    since_ms = struct.unpack('>I6', mark)
  end
  local bitmap_key = witness(view.list_key, view.period)
  if not view.is_attesting then
    view.is_attesting = true
    local name = decimal(view.period)
    local length = redis.pcall('STRLEN', bitmap_key)
    if view.witnessed[name] then
      view.is_blind = type(length) ~= 'number' or length == 0
    else
      -- If no bitmap is named, an existing one describes buckets that an epoch was ended for.
      local is_first = next(view.witnessed) == nil
      if is_first or type(length) ~= 'number' then redis.call('DEL', bitmap_key) end
      local names = {name}
      for other in pairs(view.witnessed) do
        if tonumber(other) >= view.last_period then names[#names + 1] = other end
      end
      redis.call('HSET', owner_key, 'witnessed', table.concat(names, ' '))
    end
  end
  -- A bitmap that vanished is not made again: a new one would lack the earlier buckets. The next
  -- missing bucket ends the epoch (lib/expected).
  if view.is_blind then return nil end
  redis.call('SETBIT', bitmap_key, place(key), 1)
  -- It is needed until the end of the next period.
  if redis.call('PTTL', bitmap_key) < 0 then redis.call('PEXPIRE', bitmap_key, 3 * window_ms) end
  return struct.pack('>I6', since_ms) .. string.sub(view.mark, 7)
end
