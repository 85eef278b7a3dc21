-- A counter goes on above its ceiling where its own epoch was closed there. A release lifts the
-- counters of every epoch before it, however that was closed, and older programs go by the newest
-- close at the ceiling: what is lifted goes up to last_ceiling_epoch, but where a recovery by this
-- program wrote that last. It notes the same epoch as recovered_ceiling_epoch, and keeps what was
-- lifted before in lifted_epoch.
-- old binary: refuses to start (the schema is newer than it knows). One that runs already closes and
-- releases without these columns: what it closes at the ceiling is lifted as before.

alter table partition add column lifted_epoch bigint not null default 0
    constraint partition_lifted_epoch_not_negative check (lifted_epoch >= 0);
alter table partition add column recovered_ceiling_epoch bigint not null default 0
    constraint partition_recovered_ceiling_epoch_not_negative
        check (recovered_ceiling_epoch >= 0);
