-- expected: whether a bucket should exist: it was written to within the window, or the evidence of
-- that has itself vanished (lib/witness). The bitmaps are read at the first bucket of a flight that
-- has no mark, and so before the flight writes to one.
-- Takes the flight's view of the records, the bucket's key.
-- Returns true | false
local function expected(view, key)
  if not view.bitmaps then
    view.bitmaps = {}
    for name in pairs(view.witnessed) do
      local period = tonumber(name)
      if period >= view.last_period then
        local bits = redis.pcall('GETRANGE', witness(view.list_key, period), 0, -1)
        view.bitmaps[#view.bitmaps + 1] = type(bits) == 'string' and bits or ''
      end
    end
  end
  local at = place(key)
  for _, bits in ipairs(view.bitmaps) do
    if bits == '' then return true end
    local byte = string.byte(bits, math.floor(at / 8) + 1) or 0
    if math.floor(byte / 2 ^ (7 - at % 8)) % 2 == 1 then return true end
  end
  return false
end
