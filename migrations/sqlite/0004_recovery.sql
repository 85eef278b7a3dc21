-- What recoveries and fall-backs need to know beyond epochs: whether an operator wants a partition
-- on the database, which data set of Redis each node sees (F22: nodes that see different ones must
-- not move a partition), and how many journal batches a node has committed: a ledger that knows of
-- fewer than it confirmed has gone back (F9).
-- old binary: refuses to start (the schema is newer than it knows)

alter table partition add column wanted text not null default 'auto'
    constraint partition_wanted_known check (wanted in ('auto', 'database'));

-- JSON: {incarnation: [partitions]}; null: this node has no opinion (a one-shot command).
alter table node add column sight text;
alter table node add column batches integer not null default 0
    constraint node_batches_not_negative check (batches >= 0);
