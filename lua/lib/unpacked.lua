-- unpacked: reads the text of one idempotency record (the format is in lib/remember).
-- Takes the text.
-- Returns {epoch, at_ms, node, flight, place, digest, values?, record?}; {} if it is none
local function unpacked(text)
  if #text < 44 then return {} end
  local epoch, at_ms, node, flight, place, digest, after = struct.unpack('>I6I6c16I6I2c8', text)
  node = string.format('%08x%08x%08x%08x', struct.unpack('>I4I4I4I4', node))
  local values, record = string.match(string.sub(text, after), '^(%S+) (.*)$')
  return {
    epoch = decimal(epoch), at_ms = at_ms, node = node, flight = decimal(flight),
    place = decimal(place), digest = digest, values = values, record = record,
  }
end
