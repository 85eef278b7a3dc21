-- complete: whether a record that is not in its bucket was never written within the window.
-- Takes the flight's view of the records, the bucket's mark.
-- Returns true | false
local function complete(view, mark)
  if not view.complete then return false end
  if not mark or mark == view.mark then return true end
  return #mark == 18 and struct.unpack('>I6', mark) <= view.oldest_ms
end
