-- clock: the time by which idempotency records are written and judged. One clock for all nodes, the
-- server's: a node's clock may be wrong by more than the window and would forget for all nodes.
-- Takes a time in ms, or '' for now.
-- Returns ms since 1970
local function clock(named_ms)
  if named_ms ~= '' then return tonumber(named_ms) end
  local now = redis.call('TIME')
  return 1000 * tonumber(now[1]) + math.floor(tonumber(now[2]) / 1000)
end
