-- place: the place of a bucket among all buckets: the number that ends its key (lib/bucket).
-- Takes the bucket's key.
-- Returns a number from 0
local function place(bucket_key)
  return tonumber(string.match(bucket_key, '%d+$'))
end
