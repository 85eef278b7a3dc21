-- repeated: what the idempotency records answer to a request; the caller's key comes first.
-- Takes the flight's view of the records, what the request asks (lib/marked), its digest, the names
--   of its idempotency records, each false if there is none.
-- Returns nil (take numbers) | {"ask"} | {"vanished"} | {"journaled"} | {"reused"}
--   | {"replayed", values, record} | {"numbered", values, record}; and the document's record, if
--   the caller's key is new to it
local function repeated(view, asks, digest, caller, document)
  local again, asked, once = asks % 2 == 1, asks % 4 >= 2, asks >= 4
  if caller then
    local word, found = recall(view, caller, digest, asked)
    if word == 'ask' or word == 'vanished' then return {word} end
    if word == 'same' then return allocated(view, 'replayed', found) end
    if word == 'other' then return {'reused'} end
  end
  if document then
    local word, found = recall(view, document, digest, asked, once)
    if word == 'ask' or word == 'vanished' then return {word} end
    if word == 'same' then return allocated(view, 'replayed', found), found end
    if word == 'other' and not again then return allocated(view, 'numbered', found) end
  end
  return nil
end
