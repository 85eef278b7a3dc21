-- no-transaction
-- A second equal value of a counter (R1.10), the probe for an overlapping neighbour, holes.
-- Without `turn`, which was always 0.
-- old binary: see 0025

create unique index concurrently if not exists journal_value on journal (counter_id, first_value);
