-- boarded: the requests of a flight, put together from its arguments; reads nothing else.
-- Takes {wishes, requests} as decoded, the marks, a counter's key and a request's allocation record
--   by place.
-- Returns requests of {takes: [{key, count, step, max, seen?}], digest, caller?, document?, again?,
--   asked?, record}; caller and document are names of idempotency records | nil, what is wrong
local function boarded(orders, marks, key, record)
  -- One entry is written by one call, whose arguments must fit Lua's stack.
  if #orders.requests > 1000 then return nil, 'more than 1000 requests' end
  for _, wish in ipairs(orders.wishes) do
    if tonumber(wish.count) < 1 or tonumber(wish.step) < 1 then
      return nil, 'count and step start at 1'
    end
    wish.key = key(wish.key)
  end
  for i, request in ipairs(orders.requests) do
    if #request.takes == 0 then return nil, 'a request takes nothing' end
    for j, place in ipairs(request.takes) do
      request.takes[j] = orders.wishes[place]
    end
    local at = 32 * (i - 1)
    request.digest = string.sub(marks, at + 1, at + 8)
    request.caller = request.caller and string.sub(marks, at + 9, at + 20)
    request.document = request.document and string.sub(marks, at + 21, at + 32)
    request.record = record(i)
  end
  return orders.requests
end
