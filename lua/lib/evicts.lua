-- evicts: whether this server may drop keys when memory is short; assumed if it does not say.
-- Takes nothing.
-- Returns true | false
local function evicts()
  local info = redis.call('INFO', 'memory')
  return string.match(info, '\nmaxmemory_policy:([^\r\n]*)') ~= 'noeviction'
end
