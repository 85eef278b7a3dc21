-- kept: the records of a flight without those of requests that took nothing; each of these is
-- replaced by "-", so that the others keep their places.
-- Takes the flight's view of the records, the outcomes.
-- Returns the text, one record per line
local function kept(view, outcomes)
  view.lines = view.lines or lines(view.texts)
  local list = {}
  for i, line in ipairs(view.lines) do list[i] = type(outcomes[i]) == 'string' and line or '-' end
  return table.concat(list, '\n') .. '\n'
end
