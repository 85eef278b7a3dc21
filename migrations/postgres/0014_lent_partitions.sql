-- An import lends partitions to the database while it lifts counters that Redis counts. What it set
-- it must be able to take back, and nothing else: an operator may ask for the fall-back meanwhile.
-- old binary: refuses to start (the schema is newer than it knows). One that runs already
-- looks at `wanted` alone and may take a lent partition back: import once all are of this version.

-- Who has it, 16 random bytes of one command; null: nobody. Apart from `wanted`, an operator's wish.
alter table partition add column lent_to bytea
    constraint partition_lent_to_is_an_id check (length(lent_to) = 16);
