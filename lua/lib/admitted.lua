-- admitted: how many requests a flight has and what they take, built from its arguments alone.
-- Takes the baskets as decoded, in which it replaces texts with keys and numbers, except the
--   step; the marks; a function that gives a counter's key by its place.
-- Returns the number of requests | nil, what is wrong
local function admitted(baskets, marks, key)
  local count = #marks / 35
  -- One entry is written by one call, whose arguments must fit Lua's stack.
  if count > 1000 then return nil, 'more than 1000 requests' end
  if count % 1 ~= 0 then return nil, 'a request has 35 bytes of marks' end
  for _, basket in ipairs(baskets) do
    if #basket == 0 then return nil, 'a request takes nothing' end
    for _, wish in ipairs(basket) do
      local many, step = tonumber(wish.count), tonumber(wish.step)
      if many < 1 or step < 1 then return nil, 'count and step start at 1' end
      wish.key, wish.seen = key(wish.key), wish.seen and tonumber(wish.seen)
      wish.start = wish.start and tonumber(wish.start)
      -- Beyond 2^53 the sum is rounded, but never down to a value that passes.
      wish.max, wish.span = math.min(tonumber(wish.max), 9007199254740991), many * step
      wish.is_single = many == 1
    end
  end
  return count
end
