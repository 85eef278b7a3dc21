-- Gapless series have a partition of their own, one past the hashed ones: the database always owns
-- it. A new ledger gets the row when it is set up.
-- old binary: ok (it serves the hashed partitions, and refuses a series with a policy)

insert into partition (partition_id, changed_at_us)
select partitions, cast(unixepoch('subsec') * 1000000 as integer) from deployment;
