-- take: takes all the ranges of one request from the working copies of the counters, or none.
-- Takes the working copies by key, the request's takes, the epoch.
-- Returns nil, values | {"cold", take} | {"regressed", take} | {"exhausted", take}
--   | {"ceiling", take, value, ceiling}; `take` counts from 0
local function take(counters, takes, epoch)
  local moved, ranges = {}, {}
  for i, wish in ipairs(takes) do
    local copy = counters[wish.key]
    if not copy then
      local state, value, ceiling, id = counter(wish.key, epoch)
      copy = {state = state, stored = value, value = value, ceiling = ceiling, id = id}
      counters[wish.key] = copy
    end
    if copy.state ~= 'warm' then return {copy.state, decimal(i - 1)} end
    if wish.seen and copy.stored < tonumber(wish.seen) then return {'regressed', decimal(i - 1)} end

    local value, step = moved[wish.key] or copy.value, tonumber(wish.step)
    local last = value + step * tonumber(wish.count)
    -- Beyond 2^53 the sum is rounded, yet never down to a value that passes.
    if last > math.min(tonumber(wish.max), 9007199254740991) then
      return {'exhausted', decimal(i - 1)}
    end
    if last > copy.ceiling then
      return {'ceiling', decimal(i - 1), decimal(value), decimal(copy.ceiling)}
    end
    moved[wish.key] = last
    local upto = decimal(last)
    local from = wish.count == '1' and upto or decimal(value + step)
    ranges[i] = table.concat({copy.id, from, upto, wish.step}, ':')
  end
  for key, value in pairs(moved) do
    counters[key].value = value
  end
  return nil, table.concat(ranges, ',')
end
