-- working: the working copy of a counter, read when a flight first needs it.
-- Takes the working copies by key, the counter's key, the epoch.
-- Returns {state, stored, value, ceiling, id} as lib/counter reads them; stored stays as it is
local function working(counters, key, epoch)
  local copy = counters[key]
  if not copy then
    local state, value, ceiling, id = counter(key, epoch)
    copy = {state = state, stored = value, value = value, ceiling = ceiling, id = id}
    counters[key] = copy
  end
  return copy
end
