-- With each heartbeat a process says what keeps it from its work: why it does not reach Redis, what
-- the ledger refuses it, how much waits for its journal. Whoever looks at the ledger learns it from
-- there, for no other process knows it. JSON, as the program that wrote it knows it; null where a
-- process has no opinion, or is of before.
-- old binary: refuses to start (the schema is newer than it knows). One that runs already says
-- nothing.

alter table node add column report text;
