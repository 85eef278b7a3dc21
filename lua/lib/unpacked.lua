-- unpacked: reads the text of one idempotency record (lib/remember says what it holds).
-- Takes the text.
-- Returns {epoch, at_ms, node, flight, place, digest, values?, record?}; {} where it is none
local function unpacked(text)
  if #text < 44 then return {} end
  local epoch, at_ms, node, flight, place, digest, after = struct.unpack('>I6I6c16I6I2c8', text)
  node = string.gsub(node, '.', function(byte)
    return string.format('%02x', string.byte(byte))
  end)
  local values, record = string.match(string.sub(text, after), '^(%S+) (.*)$')
  return {
    epoch = decimal(epoch), at_ms = at_ms, node = node, flight = decimal(flight),
    place = decimal(place), digest = digest, values = values, record = record,
  }
end
