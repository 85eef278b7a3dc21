-- decimal: writes a whole number in full; `..` would round it at 15 digits.
-- Takes a number.
-- Returns its text
local function decimal(number)
  return string.format('%.0f', number)
end
