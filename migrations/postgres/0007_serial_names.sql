-- A counter belongs to the serial of its name, not of its place: a new version of a series that
-- lists its serials in another order must not swap their counters (R3.3). What is there gets its
-- name from the active version; a serial that this version has dropped keeps its place as a
-- number, which no name is (names begin with a letter).
-- Counters that an older binary left in Redis stand there under other names. They are cold to this
-- one, although the ledger says that they were seeded: their partition recovers, and no value is
-- taken twice.
-- old binary: refuses to start (the schema is newer than it knows); one that still runs takes no
-- numbers of counters that are not in Redis yet, and journals what it has

alter table counter add column serial_name text collate "C";
update counter set serial_name = coalesce(
    (select v.definition::json -> 'serials' -> counter.serial ->> 'name'
     from series s
     join series_version v on v.series_id = s.series_id and v.version = s.active_version
     where s.series_id = counter.series_id),
    counter.serial::text);
-- Its check and the unique name go with the column.
alter table counter drop column serial;
alter table counter rename column serial_name to serial;
alter table counter
    alter column serial set not null,
    add constraint counter_serial_not_empty check (serial <> ''),
    add constraint counter_name unique (series_id, serial, key);
