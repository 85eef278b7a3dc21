-- take: takes all the ranges of one request from the working copies of the counters, or none.
-- Takes the working copies by key, the request's takes, the epoch.
-- Returns nil, values | {"cold", take} | {"regressed", take} | {"unseen", take, id, ceiling}
--   | {"below", take, id, value} | {"exhausted", take} | {"ceiling", take, value, ceiling}; `take`
--   counts from 0
local function take(counters, takes, epoch)
  local values
  for i = 1, #takes do
    local wish = takes[i]
    local copy = working(counters, wish.key, epoch)
    local refusal, last
    if copy.state ~= 'warm' then
      refusal = {copy.state, decimal(i - 1)}
    elseif not wish.seen then
      -- Both copies may have been lowered alike: the caller asks the ledger first (F33).
      refusal = {'unseen', decimal(i - 1), copy.id, decimal(copy.ceiling)}
    elseif copy.stored < wish.seen then
      refusal = {'regressed', decimal(i - 1)}
    else
      last = copy.value + wish.span
      if wish.start and copy.value + tonumber(wish.step) < wish.start then
        refusal = {'below', decimal(i - 1), copy.id, decimal(copy.value)}
      elseif last > wish.max then
        refusal = {'exhausted', decimal(i - 1)}
      elseif last > copy.ceiling then
        refusal = {'ceiling', decimal(i - 1), decimal(copy.value), decimal(copy.ceiling)}
      end
    end
    if refusal then
      for j = 1, i - 1 do
        local moved = counters[takes[j].key]
        moved.value = moved.value - takes[j].span
      end
      return refusal
    end

    local upto = decimal(last)
    local from = wish.is_single and upto or decimal(copy.value + tonumber(wish.step))
    copy.value = last
    local range = copy.id .. ':' .. from .. ':' .. upto .. ':' .. wish.step
    values = values and values .. ',' .. range or range
  end
  return nil, values
end
