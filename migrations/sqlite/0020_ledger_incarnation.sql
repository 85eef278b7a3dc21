-- The ledger itself may go back: an older copy of the file is put in its place. Each writing transaction
-- raises the generation, and the mark beside the file has the highest that was committed (F25).
-- old binary: refuses to start (the schema is newer than it knows). One that runs already does not compare.

create table incarnation (
    only_row integer not null primary key constraint incarnation_is_one check (only_row = 1),
    -- Rises whenever partitions are held.
    number integer not null constraint incarnation_number_is_positive check (number > 0),
    -- Drawn with each number: of two branches of one ledger each draws its own.
    nonce blob not null constraint incarnation_nonce_is_an_id check (length(nonce) = 16),
    -- Transactions that may have written.
    generation integer not null
);
