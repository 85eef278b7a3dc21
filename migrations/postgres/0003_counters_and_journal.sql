-- The counters and everything that was ever taken from them. A counter's own row is the fence of
-- each write that depends on an epoch (F4). Every value between a counter's origin and its start is
-- in exactly one of journal, journal_rejected and gap; a value in two of them, or in none, is what
-- `verify` looks for.
-- Keys, numbers and scopes compare byte for byte in every engine (F24).
-- old binary: ok (there is none)

create table counter (
    counter_id bigint generated always as identity constraint counter_pk primary key,
    series_id bigint not null,
    serial integer not null constraint counter_serial_not_negative check (serial >= 0),
    key text collate "C" not null,
    partition_id integer not null,
    epoch bigint not null constraint counter_epoch_not_negative check (epoch >= 0),
    origin bigint not null,
    start_value bigint not null,
    taken bigint not null,
    ceiling bigint not null,
    step bigint not null constraint counter_step_at_least_1 check (step >= 1),
    journaled bigint not null default 0
        constraint counter_journaled_not_negative check (journaled >= 0),
    seeded_by bytea not null,
    seeded_at_us bigint not null,
    constraint counter_name unique (series_id, serial, key),
    -- Always true: a value found above the ceiling lifts the ceiling with it.
    constraint counter_in_order
        check (origin <= start_value and start_value <= taken and taken <= ceiling)
);

-- One row per range. No foreign keys: a row that was handed out must always fit (F13), and each
-- would cost a look-up per row. The idempotency key is not unique: one key may legitimately have
-- two numbers after a close at the ceiling (F13).
-- `turn` is 0 until a returned number may be issued again (F21). A number with several serials has
-- one row per serial; the first carries the number and, in `rest`, the others.
create table journal (
    counter_id bigint not null,
    first_value bigint not null constraint journal_first_not_negative check (first_value >= 0),
    turn integer not null default 0 constraint journal_turn_not_negative check (turn >= 0),
    last_value bigint not null,
    step bigint not null constraint journal_step_at_least_1 check (step >= 1),
    allocation_id bytea not null,
    number text collate "C",
    scope text collate "C",
    mask text collate "C",
    rest text,
    series_id bigint not null,
    version integer not null,
    type_code text not null,
    project text,
    document_id text collate "C",
    document_date text not null,
    context text,
    user_id text collate "C" not null,
    ip_address text,
    idempotency_key text collate "C",
    payload_digest text not null,
    issued_at_us bigint not null,
    retry_count integer not null,
    path text not null constraint journal_path_known check (path in ('redis', 'database')),
    partition_id integer not null,
    epoch bigint not null,
    node_id bytea not null,
    journaled_at_us bigint not null,
    -- A second equal value of a counter (R1.10), the probe for an overlapping neighbour, holes.
    constraint journal_value_once primary key (counter_id, first_value, turn),
    -- A second equal number within its scope (R1.10). The number leads: it serves look-ups too.
    constraint journal_number_once unique (number, scope),
    constraint journal_range_in_order check (first_value <= last_value),
    constraint journal_number_has_scope
        check ((number is null) = (scope is null) and (number is null) = (mask is null))
);
-- `documents/{id}/numbers`, and the replay of a document's number (R1.8). All columns of the
-- question: while there are no statistics the planner must not think another index better.
create index journal_document on journal (document_id, series_id) where document_id is not null;
-- The replay of a caller's key once Redis does not know it (F1); likewise.
create index journal_key on journal (idempotency_key, user_id, series_id)
    where idempotency_key is not null;
-- "Who took what" (R5.3): a rare user's rows cannot be found by time without reading them all.
create index journal_user on journal (user_id, issued_at_us);
-- A database transaction looks for its own earlier attempt (F10); rows of Redis pay nothing.
create index journal_allocation on journal (allocation_id) where path = 'database';
-- Search by time: rows arrive in the order of time, so a few bytes per block are enough.
create index journal_issued on journal using brin (issued_at_us) with (autosummarize = on);

-- Rows that the database refused, raw (F13). They count like journal rows.
create table journal_rejected (
    journal_rejected_id bigint generated always as identity
        constraint journal_rejected_pk primary key,
    counter_id bigint not null,
    first_value bigint not null,
    last_value bigint not null,
    step bigint not null constraint journal_rejected_step_at_least_1 check (step >= 1),
    allocation_id bytea not null,
    raw text not null,
    reason text not null,
    rejected_at_us bigint not null,
    constraint journal_rejected_once unique (counter_id, first_value, allocation_id),
    constraint journal_rejected_range_in_order check (first_value <= last_value)
);

-- Values that will not be issued any more, and why.
create table gap (
    gap_id bigint generated always as identity constraint gap_pk primary key,
    counter_id bigint not null,
    first_value bigint not null,
    last_value bigint not null,
    step bigint not null constraint gap_step_at_least_1 check (step >= 1),
    reason text not null
        constraint gap_reason_known check (reason in ('discarded', 'unaccounted', 'collided')),
    epoch bigint not null,
    noted_at_us bigint not null,
    -- Also the probe for gaps that a late row fills.
    constraint gap_value_once unique (counter_id, first_value),
    constraint gap_range_in_order check (first_value <= last_value)
);

-- Duplicates that the ledger noticed: the whole second record, so that nothing is lost.
create table collision (
    collision_id bigint generated always as identity constraint collision_pk primary key,
    counter_id bigint not null,
    first_value bigint not null,
    last_value bigint not null,
    step bigint not null constraint collision_step_at_least_1 check (step >= 1),
    allocation_id bytea not null,
    other_allocation_id bytea,
    number text not null,
    raw text not null,
    noted_at_us bigint not null,
    constraint collision_once unique (counter_id, first_value, allocation_id),
    constraint collision_range_in_order check (first_value <= last_value)
);
