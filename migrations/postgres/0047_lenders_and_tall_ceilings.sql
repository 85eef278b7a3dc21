-- A partition that is lent to the database names the node that lent it: where that one has ended
-- without a word, the watch takes the partition back. And it names its last epoch in which a ceiling
-- was raised far above its counter: only there is it looked for such ones, which become large gaps
-- in a crash.
-- old binary: refuses to start (the schema is newer than it knows). One that runs already lends and
-- raises without these columns: its loans wait for an operator, and its tall ceilings are looked for
-- once this version has raised one in the partition.

alter table partition add column lender bytea
    constraint partition_lender_is_an_id check (length(lender) = 16);
alter table partition add column tall_epoch bigint not null default 0
    constraint partition_tall_epoch_not_negative check (tall_epoch >= 0);

-- What was raised before was not noted.
update partition set tall_epoch = epoch;
