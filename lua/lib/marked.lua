-- marked: what a flight's marks say of one request. Read when the request is processed, and not
-- kept: a table of requests costs more than the requests.
-- Takes the marks, the request's place.
-- Returns the place of its basket, what it asks (1: again + 2: asked + 4: once per document), its
--   digest, the name of the caller's idempotency record | false, that of the document's | false
local function marked(marks, i)
  local none = '\0\0\0\0\0\0\0\0\0\0\0\0'
  local basket, asks, digest, caller, document = struct.unpack('>I2I1c8c12c12', marks, 35 * i - 34)
  return basket, asks, digest, caller ~= none and caller, document ~= none and document
end
