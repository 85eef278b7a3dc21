-- witness: the evidence of which buckets of idempotency records should exist, so that one that
-- vanished is not taken for one that never existed (F28). For each period as long as the window
-- there is a bitmap of the buckets that were written to in it, and the owner record names the
-- periods that have one (`witnessed`). A record in the window was written in this period or the
-- last one. A bucket that should exist and does not ends the epoch: the journal may not have its
-- numbers. A bucket's mark says since when it has all of its records (0, unless an older program
-- found it gone), and in which epoch and period it was last witnessed: 6 bytes each.
-- Takes the list key, when the period begins, ms.
-- Returns the bitmap's key
local function witness(list_key, period)
  return list_key .. ':w' .. decimal(period)
end
