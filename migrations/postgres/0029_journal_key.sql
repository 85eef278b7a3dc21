-- no-transaction
-- The replay of a caller's key once Redis does not know it (F1). Keys are long, and nobody asks
-- for those that begin alike: their hashes are enough.
-- old binary: see 0025

create index concurrently if not exists journal_idempotency_key
    on journal using hash (idempotency_key) where idempotency_key is not null;
