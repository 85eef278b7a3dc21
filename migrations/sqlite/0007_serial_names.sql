-- A counter belongs to the serial of its name, not of its place: a new version of a series that
-- lists its serials in another order must not swap their counters (R3.3). What is there gets its
-- name from the active version; a serial that this version has dropped keeps its place as a
-- number, which no name is (names begin with a letter).
-- Counters that an older binary left in Redis stand there under other names. They are cold to this
-- one, although the ledger says that they were seeded: their partition recovers, and no value is
-- taken twice.
-- old binary: refuses to start (the schema is newer than it knows); one that still runs takes no
-- numbers of counters that are not in Redis yet, and journals what it has

-- SQLite drops no column that a constraint uses: the table is written anew.
create table counter_named (
    counter_id integer constraint counter_pk primary key,
    series_id integer not null,
    serial text not null constraint counter_serial_not_empty check (serial <> ''),
    key text not null,
    partition_id integer not null,
    epoch integer not null constraint counter_epoch_not_negative check (epoch >= 0),
    origin integer not null,
    start_value integer not null,
    taken integer not null,
    ceiling integer not null,
    step integer not null constraint counter_step_at_least_1 check (step >= 1),
    journaled integer not null default 0
        constraint counter_journaled_not_negative check (journaled >= 0),
    seeded_by blob not null,
    seeded_at_us integer not null,
    constraint counter_name unique (series_id, serial, key),
    -- Always true: a value found above the ceiling lifts the ceiling with it.
    constraint counter_in_order
        check (origin <= start_value and start_value <= taken and taken <= ceiling)
) strict;
insert into counter_named
select c.counter_id, c.series_id,
    coalesce(
        (select json_extract(v.definition, '$.serials[' || c.serial || '].name')
         from series s
         join series_version v on v.series_id = s.series_id and v.version = s.active_version
         where s.series_id = c.series_id),
        cast(c.serial as text)),
    c.key, c.partition_id, c.epoch, c.origin, c.start_value, c.taken, c.ceiling, c.step,
    c.journaled, c.seeded_by, c.seeded_at_us
from counter c;
drop table counter;
alter table counter_named rename to counter;
