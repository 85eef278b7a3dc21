-- repeated: what the idempotency records answer to a request; the caller's key first (R1.8).
-- Takes the records read so far by key, the request, the epoch, whether the data set is complete.
-- Returns nil (take numbers) | {"ask"} | {"reused"} | {"replayed", values, record}
--   | {"numbered", values, record}
local function repeated(records, request, epoch, complete)
  local digest, asked = request.digest, request.asked
  if request.caller then
    local word, values, record = recall(records, request.caller, epoch, digest, asked, complete)
    if word == 'ask' then return {'ask'} end
    if word == 'same' then return {'replayed', values, record} end
    if word == 'other' then return {'reused'} end
  end
  if request.document then
    local word, values, record = recall(records, request.document, epoch, digest, asked, complete)
    if word == 'ask' then return {'ask'} end
    if word == 'same' then return {'replayed', values, record} end
    if word == 'other' and not request.again then return {'numbered', values, record} end
  end
  return nil
end
