-- decimal: writes a whole number in full; `..` would round it at 15 digits.
-- Takes a number.
-- Returns its text
local function decimal(number)
  return string.format('%d', number)
end
-- If the server's long is too short for every whole number that Lua holds exactly.
if decimal(9007199254740991) ~= '9007199254740991' then
  decimal = function(number) return string.format('%.0f', number) end
end
