-- What a closed epoch lost is looked for behind the counter's next start, in slices that commit one
-- by one: an epoch may have been longer than any call may take. Until a slice has been looked
-- through, its missing values stand nowhere, and the row here says so. Beside it, how many values
-- the counter had counted: where fewer are found, rows were deleted, and the row stays.
-- Collisions and rejected records that somebody has explained are marked, and alarm no more.
-- old binary: refuses to start (the schema is newer than it knows). One that runs already goes on:
-- it looks through an epoch at once, as it always did, and leaves what is here to others.

create table unsettled (
    unsettled_id integer constraint unsettled_pk primary key,
    counter_id integer not null,
    epoch integer not null,
    -- Looked through up to here,
    after_value integer not null,
    -- to be looked through up to here.
    upto_value integer not null,
    step integer not null constraint unsettled_step_at_least_1 check (step >= 1),
    reason text not null
        constraint unsettled_reason_known check (reason in ('discarded', 'unaccounted')),
    journaled integer not null,
    found integer not null,
    noted_at_us integer not null,
    constraint unsettled_in_order check (after_value <= upto_value)
) strict;

-- A family of counters whose last date is still being looked for: how far, and what was found. Its
-- row goes when `chronology` has the date. An older program sees no date, and looks for itself.
create table chronology_search (
    series_id integer not null,
    serial text not null,
    family text not null,
    last_date text not null,
    key text not null,
    value integer not null,
    constraint chronology_search_pk primary key (series_id, serial, family)
) strict;

alter table collision add column acknowledged_at_us integer;
alter table collision add column acknowledged_by text;
alter table collision add column acknowledged_reason text;

alter table journal_rejected add column acknowledged_at_us integer;
alter table journal_rejected add column acknowledged_by text;
alter table journal_rejected add column acknowledged_reason text;
