-- complete: whether a record that is not in its bucket was never written within the window.
-- Takes the flight's view of the records, the bucket's key.
-- Returns true | false
local function complete(view, key)
  local mark = view.marks[key]
  if not view.complete then return false end
  if mark == view.mark then return true end
  if mark and #mark == 18 then return struct.unpack('>I6', mark) <= view.oldest_ms end
  return not expected(view, key)
end
