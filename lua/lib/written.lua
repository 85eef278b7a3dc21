-- written: one idempotency record as its bucket holds it, and the bucket's mark, which the bucket
-- holds under the empty name (lib/witness).
-- Takes the bucket's key, the record's name.
-- Returns false if there is none, else what lib/unpacked reads; the mark's text | false
local function written(bucket_key, name)
  local texts = redis.pcall('HMGET', bucket_key, name, '')
  -- A key of another type is not an answer, but neither is it missing.
  if texts.err then return unpacked(''), false end
  return texts[1] and unpacked(texts[1]), texts[2]
end
