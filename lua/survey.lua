-- survey: what a server holds of a partition: its owner record, and how long outboxes are. Reads
-- only, whatever the epoch is: for people; never the basis of a decision.
-- KEYS[1] owner record          KEYS[2..] outboxes
-- ARGV[1] echo
-- Returns {"surveyed", echo, role, master_replid, epoch, incarnation, deployment,
--   continuous_since_ms, window_ms, confirmed, nodes, lengths, senders}; "" is what the owner
--   record lacks, a node one that sent flights under it with entries left, `senders` all that sent flights under it, a length "" that of a key of another type
local owner_key, echo = KEYS[1], ARGV[1]

local role, shown = server()
local fields = redis.pcall('HGETALL', owner_key)
if fields.err then fields = {} end
local owner, nodes, senders = {}, {}, {}
for i = 1, #fields, 2 do
  local node = string.match(fields[i], '^n:(%x+)$')
  if node then senders[#senders + 1] = node end
  if node and fields[i + 1] ~= '0' then nodes[#nodes + 1] = node end
  owner[fields[i]] = fields[i + 1]
end
local lengths = {}
for i = 2, #KEYS do
  local length = redis.pcall('XLEN', KEYS[i])
  lengths[i - 1] = type(length) == 'number' and decimal(length) or ''
end
return {
  'surveyed', echo, role, shown, owner.epoch or '', owner.incarnation or '',
  owner.deployment or '', owner.continuous_since_ms or '', owner.window_ms or '', owner.confirmed or '', nodes, lengths, senders
}
