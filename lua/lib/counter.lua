-- counter: reads one counter and judges it (F3).
-- Takes its key and the epoch.
-- Returns "cold" | "regressed" | "warm", value, ceiling, id
local function counter(key, epoch)
  local fields = redis.pcall('HMGET', key, 'epoch', 'value', 'check', 'ceiling', 'id')
  -- A key without this epoch is cold, whatever its type: only a cold counter is seeded, and only
  -- the seed removes a key of another type. The ledger knows whether a cold one was lost (F14).
  if fields.err or fields[1] ~= epoch then return 'cold' end
  local value, ceiling = integer(fields[2]), integer(fields[4])
  if not value or not ceiling or not integer(fields[5]) then return 'regressed' end
  if fields[2] ~= fields[3] or value > ceiling then return 'regressed' end
  return 'warm', value, ceiling, fields[5]
end
