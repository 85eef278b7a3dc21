-- What a closed epoch lost is looked for behind the counter's next start, in slices that commit one
-- by one: an epoch may have been longer than any call may take. Until a slice has been looked
-- through, its missing values stand nowhere, and the row here says so. Beside it, how many values
-- the counter had counted: where fewer are found, rows were deleted, and the row stays.
-- Collisions and rejected records that somebody has explained are marked, and alarm no more.
-- old binary: refuses to start (the schema is newer than it knows). One that runs already goes on:
-- it looks through an epoch at once, as it always did, and leaves what is here to others.

create table unsettled (
    unsettled_id bigint generated always as identity constraint unsettled_pk primary key,
    counter_id bigint not null,
    epoch bigint not null,
    -- Looked through up to here,
    after_value bigint not null,
    -- to be looked through up to here.
    upto_value bigint not null,
    step bigint not null constraint unsettled_step_at_least_1 check (step >= 1),
    reason text not null
        constraint unsettled_reason_known check (reason in ('discarded', 'unaccounted')),
    journaled bigint not null,
    found bigint not null,
    noted_at_us bigint not null,
    constraint unsettled_in_order check (after_value <= upto_value)
);

-- A family of counters whose last date is still being looked for: how far, and what was found. Its
-- row goes when `chronology` has the date. An older program sees no date, and looks for itself.
create table chronology_search (
    series_id bigint not null,
    serial text collate "C" not null,
    family text collate "C" not null,
    last_date text collate "C" not null,
    key text collate "C" not null,
    value bigint not null,
    constraint chronology_search_pk primary key (series_id, serial, family)
);

alter table collision
    add column acknowledged_at_us bigint,
    add column acknowledged_by text,
    add column acknowledged_reason text;

alter table journal_rejected
    add column acknowledged_at_us bigint,
    add column acknowledged_by text,
    add column acknowledged_reason text;
