-- lines: the records that a flight carries together, one per line.
-- Takes the text.
-- Returns them in their order
local function lines(text)
  local list = {}
  for line in string.gmatch(text, '[^\n]+') do list[#list + 1] = line end
  return list
end
