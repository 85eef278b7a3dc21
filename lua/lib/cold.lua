-- cold: whether a request needs a counter that is not in Redis in this epoch. Until the ledger has
-- taken the counter into the epoch, a late transaction of the database may take from it: the
-- journal would then be asked too early (F27).
-- Takes the working copies by key, the request's takes, the epoch.
-- Returns {"cold", take} | nil; `take` counts from 0
local function cold(counters, takes, epoch)
  for i, wish in ipairs(takes) do
    if working(counters, wish.key, epoch).state == 'cold' then return {'cold', decimal(i - 1)} end
  end
end
