-- evicts: whether this server may drop keys when its memory is short. One that does not say so may.
-- Takes nothing.
-- Returns true | false
local function evicts()
  local info = redis.call('INFO', 'memory')
  return string.match(info, '\nmaxmemory_policy:([^\r\n]*)') ~= 'noeviction'
end
