-- The highest epoch that any node or Redis has shown above the ledger's own, told to a ledger that
-- went back: the epoch in which an operator releases the partition must lie above it (F9).
-- old binary: refuses to start (the schema is newer than it knows)

alter table partition add column seen_epoch integer not null default 0
    constraint partition_seen_epoch_not_negative check (seen_epoch >= 0);
