-- no-transaction
-- The rows that are not turned over yet: where the next ones are, and whether there are any.
-- old binary: see 0025

create index concurrently if not exists journal_wide on journal (counter_id, first_value)
    where batch_id is null;
