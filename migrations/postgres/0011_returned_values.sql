-- no-transaction
-- The lowest returned value of a counter is found without a look at its other gaps.
-- old binary: refuses to start (the schema is newer than it knows). One that runs already goes on.

create index concurrently if not exists gap_returned
    on gap (counter_id, first_value) where reason = 'returned';
