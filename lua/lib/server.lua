-- server: who this server says it is (F19: role and replication id come from one INFO).
-- Takes nothing.
-- Returns role, master_replid; '' where the server shows none
local function server()
  local info = redis.call('INFO', 'replication')
  local role = string.match(info, 'role:(%w+)')
  local incarnation = string.match(info, 'master_replid:(%w+)')
  return role or '', incarnation or ''
end
