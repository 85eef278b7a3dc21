-- written: one idempotency record as it stands in its bucket.
-- Takes the bucket's key, the record's name.
-- Returns false where there is none, else what lib/unpacked reads
local function written(bucket_key, name)
  local text = redis.pcall('HGET', bucket_key, name)
  -- A key of another type is not an answer, but neither is it missing.
  return text and unpacked(type(text) == 'table' and '' or text)
end
