-- Numbers that a document holds before it is final. A reserved value stands in `reservation` and in
-- no row of the journal until it is confirmed; one that ends unconfirmed returns to the gap
-- register with the reason `returned`, and is the next to be taken.
-- SQLite cannot alter a condition. It may be edited in the schema where the rows there are keep it,
-- as these do; nothing else is touched, and no table is written anew however long it is.
-- old binary: refuses to start (the schema is newer than it knows). One that runs already would
-- take reserved values for lost: nothing is reserved while one lives.

-- How many values ever came back, and how many of them left the register again. Both only rise.
-- `left_behind`: where a change or an import moved the counter up, the value it went on above. None
-- up to there comes back.
alter table counter add column returned integer not null default 0;
alter table counter add column reissued integer not null default 0
    constraint counter_pool_in_order check (0 <= reissued and reissued <= returned);
alter table counter add column left_behind integer;

-- `cancelled` and `expired` are gaps for good, where a series keeps its order of dates.
pragma writable_schema = on;
update sqlite_schema
set sql = replace(sql, '''skipped'')', '''skipped'', ''returned'', ''cancelled'', ''expired'')')
where type = 'table' and name = 'gap';
pragma writable_schema = reset;

-- The newest migration that the program of the process knows; 0 of one that says nothing of it.
alter table node add column schema integer not null default 0;

-- Live reservations only: one that ends leaves a row of `life`, one that is confirmed a row of the
-- journal. Made by who takes numbers. Callers change the row of a reservation with one statement,
-- from `reserved` alone; the sweep removes it. The row is the fence between a caller's open
-- transaction and everybody else.
create table reservation (
    -- The allocation that the number will have.
    reservation_id blob not null constraint reservation_pk primary key
        constraint reservation_id_is_an_id check (length(reservation_id) = 16),
    state text not null constraint reservation_state_known
        check (state in ('reserved', 'confirmed', 'cancelled')),
    -- By the ledger's clock: it cannot be confirmed from then on.
    expires_at_us integer not null,
    counter_id integer not null,
    first_value integer not null,
    last_value integer not null,
    step integer not null constraint reservation_step_at_least_1 check (step >= 1),
    number text not null,
    scope text not null,
    series_id integer not null,
    document_id text,
    user_id text not null,
    -- Whether the value may be issued again once it ends: not where a series keeps its order of
    -- dates.
    returns integer not null constraint reservation_returns_known check (returns in (0, 1)),
    -- What its counter had as `taken` plus `reissued` once it was made. Both only rise: of two
    -- reservations of one counter the later one has more.
    turn integer not null,
    -- The whole record, in JSON, as the journal is to have it.
    raw text not null,
    -- What it is found by, hashed.
    number_hash integer not null,
    document_hash integer,
    key_hash integer,
    reserved_at_us integer not null,
    changed_at_us integer,
    changed_by text,
    reason text,
    constraint reservation_value_once unique (counter_id, first_value),
    constraint reservation_number_once unique (number, scope),
    constraint reservation_range_in_order check (first_value <= last_value),
    constraint reservation_changed_whole check ((state = 'reserved') = (changed_at_us is null)
        and (state = 'reserved') = (changed_by is null))
) strict;
-- What a sweep looks for.
create index reservation_due on reservation (state, expires_at_us);
-- Whether a document or a caller's key has one, and whether a text is reserved.
create index reservation_document on reservation (document_hash) where document_hash is not null;
create index reservation_key on reservation (key_hash) where key_hash is not null;
create index reservation_number on reservation (number_hash);
