-- completed: the answers of a flight that was executed before, from its outbox entry (F15: no entry
-- and a correct count mean that it took nothing).
-- Takes the outbox key, the flight number, the number of requests.
-- Returns outcomes; {"nothing"} for a request that the entry does not name
local function completed(outbox_key, flight, count)
  local outcomes = {}
  for i = 1, count do outcomes[i] = {'nothing'} end
  local entry = redis.call('XRANGE', outbox_key, flight .. '-0', flight .. '-0')[1]
  local fields = entry and entry[2] or {}
  for i = 1, #fields, 2 do
    local name, text = fields[i], fields[i + 1]
    if name == 'taken' then
      for place, values in string.gmatch(text, '(%d+) (%S+)') do
        outcomes[tonumber(place)] = values
      end
    elseif name ~= 'records' then
      local word, values, record = string.match(text, '^(%a+) (%S+) (.*)$')
      if word == 'replayed' or word == 'numbered' then
        outcomes[tonumber(name)] = {word, values, record}
      end
    end
  end
  return outcomes
end
