-- repeated: what the idempotency records answer to a request; the caller's key first (R1.8).
-- Takes the flight's view of the records, the request.
-- Returns nil (take numbers) | {"ask"} | {"vanished"} | {"journaled"} | {"reused"}
--   | {"replayed", values, record} | {"numbered", values, record}; and the document's record, where
--   the caller's key is new to it
local function repeated(view, request)
  if request.caller then
    local word, found = recall(view, request.caller, request.digest, request.asked)
    if word == 'ask' or word == 'vanished' then return {word} end
    if word == 'same' then return allocated(view, 'replayed', found) end
    if word == 'other' then return {'reused'} end
  end
  if request.document then
    local word, found = recall(
      view, request.document, request.digest, request.asked, request.once
    )
    if word == 'ask' or word == 'vanished' then return {word} end
    if word == 'same' then return allocated(view, 'replayed', found), found end
    if word == 'other' and not request.again then return allocated(view, 'numbered', found) end
  end
  return nil
end
