-- owned: whether a caller may act on a partition here and now.
-- Takes the echo, the owner record's key, the caller's epoch, incarnation and node.
-- Returns {"fenced", echo, epoch or "", reason} | {"barred", echo} | nil, the owner record's last
--   flight, its digest and count of entries for the node
local function owned(echo, owner_key, epoch, incarnation, node)
  local owner = redis.pcall(
    'HMGET', owner_key, 'epoch', 'incarnation', 'b:' .. node,
    'f:' .. node, 'd:' .. node, 'n:' .. node
  )
  if owner.err then return {'fenced', echo, '', 'owner record is not a hash'} end
  local here = owner[1] or ''
  local role, shown = server()
  -- The role counts too: a writable replica shows its master's id and owner record (F19).
  if role ~= 'master' then return {'fenced', echo, here, 'server is not a master'} end
  if shown ~= incarnation then return {'fenced', echo, here, 'server shows ' .. shown} end
  if here == '' then return {'fenced', echo, here, 'owner record is missing'} end
  if here ~= epoch then return {'fenced', echo, here, 'epoch differs'} end
  if owner[2] ~= incarnation then return {'fenced', echo, here, 'incarnation differs'} end
  if owner[3] then return {'barred', echo} end
  return nil, owner[4], owner[5], owner[6]
end
