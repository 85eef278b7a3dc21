-- server: the server's own account of its identity (F19: role and replication id from one INFO).
-- Takes nothing.
-- Returns role, master_replid; '' if the server shows none
local function server()
  local info = redis.call('INFO', 'replication')
  local function shown(name)
    local _, at = string.find(info, name, 1, true)
    return at and string.match(info, '^%w+', at + 1) or ''
  end
  return shown('\nrole:'), shown('\nmaster_replid:')
end
