-- integer: reads a whole number that a Lua number holds exactly.
-- Takes a text, or false if a field is missing.
-- Returns the number | nil
local function integer(text)
  if not text or not string.match(text, '^%-?%d+$') then return nil end
  local number = tonumber(text)
  if math.abs(number) > 9007199254740991 then return nil end
  return number
end
