-- headed: the head of an idempotency record: where its allocation is, and when it was written (the
-- format is in lib/remember). It is the same for all that a flight takes.
-- Takes the epoch, now, the node, the flight.
-- Returns 34 bytes
local function headed(epoch, now_ms, node, flight)
  local function part(at) return tonumber(string.sub(node, at, at + 7), 16) end
  return struct.pack(
    '>I6I6I4I4I4I4I6', epoch, now_ms, part(1), part(9), part(17), part(25), flight
  )
end
