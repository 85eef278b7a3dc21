-- guard: whether a flight may proceed; reads only.
-- Takes the echo, owner record and outbox keys, and the caller's epoch, incarnation, node, flight
-- number, last confirmed flight number and digest of its bytes.
-- Returns refusal | nil, whether it completed before, entries in the outbox
local function guard(
  echo, owner_key, outbox_key, epoch, incarnation, node, flight, confirmed, digest
)
  local refusal, sent, sent_digest, count = owned(echo, owner_key, epoch, incarnation, node)
  if refusal then return refusal end

  local last = integer(sent or '0')
  if not last then return {'fenced', echo, epoch, 'last flight is unreadable'} end
  if last > tonumber(flight) then return {'late', echo} end
  if last == tonumber(flight) and sent_digest ~= digest then return {'mismatch', echo} end
  -- The memory of a running server was restored: same incarnation, older data.
  if last < tonumber(confirmed) then
    return {'fenced', echo, epoch, 'flight ' .. confirmed .. ' is forgotten'}
  end

  -- A count is written with an epoch's first flight; until then the present length counts (F7).
  local held = redis.pcall('XLEN', outbox_key)
  if type(held) ~= 'number' then return {'miscounted', echo} end
  if sent and integer(count) ~= held then return {'miscounted', echo} end
  return nil, last == tonumber(flight), held
end
