-- The counters, the values that will never be issued, and the dates that counters have come to.
-- Every value between a counter's origin and its start is in exactly one of `journal`,
-- `journal_rejected` and `gap`, or still to be looked for by `unsettled`. A value in two of them,
-- or in none, is what `numerator verify` looks for.
-- old binary: ok (there is none)

-- One row for each counter: a serial of a series, and the key of its dimensions and period. Written
-- by whoever takes, seeds, raises or imports. The row is the fence of each write that depends on an
-- epoch (F4). Numbers below `taken` are out or will never be; Redis may go up to `ceiling` in the
-- counter's epoch.
create table counter (
    counter_id bigint generated always as identity constraint counter_pk primary key,
    series_id bigint not null,
    -- The name of the serial, not its place: a new version may list its serials in another order.
    serial text collate "C" not null constraint counter_serial_not_empty check (serial <> ''),
    key text collate "C" not null,
    partition_id integer not null,
    epoch bigint not null constraint counter_epoch_not_negative check (epoch >= 0),
    origin bigint not null,
    start_value bigint not null,
    taken bigint not null,
    ceiling bigint not null,
    step bigint not null constraint counter_step_at_least_1 check (step >= 1),
    -- Values above `start_value` that the journal has: what is missing at the end of an epoch is
    -- looked for only where this is less than was taken.
    journaled bigint not null default 0
        constraint counter_journaled_not_negative check (journaled >= 0),
    seeded_by bytea not null,
    seeded_at_us bigint not null,
    constraint counter_name unique (series_id, serial, key),
    -- Always true: a value found above the ceiling lifts the ceiling with it.
    constraint counter_in_order
        check (origin <= start_value and start_value <= taken and taken <= ceiling)
)
-- A number moves its counter's row. With room left in each page the new row stands beside the old
-- one, and no index has to follow.
with (fillfactor = 70);

-- Values that will not be issued any more, and why. Written where an epoch is settled, by imports
-- and by approved change requests. A row shrinks or goes where a record of its values turns up.
create table gap (
    gap_id bigint generated always as identity constraint gap_pk primary key,
    counter_id bigint not null,
    first_value bigint not null,
    last_value bigint not null,
    step bigint not null constraint gap_step_at_least_1 check (step >= 1),
    reason text not null constraint gap_reason_known check (reason in
        ('discarded', 'unaccounted', 'collided', 'before-import', 'skipped')),
    epoch bigint not null,
    noted_at_us bigint not null,
    -- No value twice; also the probe for gaps that a late row fills.
    constraint gap_value_once unique (counter_id, first_value),
    constraint gap_range_in_order check (first_value <= last_value)
);

-- Values of closed epochs that are still to be looked through for what is missing. Written where a
-- counter begins in a later epoch; a background job works on it in slices that commit one by one,
-- because an epoch may have been longer than any call may take. Until then its missing values stand
-- in no other table.
create table unsettled (
    unsettled_id bigint generated always as identity constraint unsettled_pk primary key,
    counter_id bigint not null,
    epoch bigint not null,
    -- Looked through up to here,
    after_value bigint not null,
    -- to be looked through up to here.
    upto_value bigint not null,
    step bigint not null constraint unsettled_step_at_least_1 check (step >= 1),
    -- The reason of the gaps that it finds.
    reason text not null
        constraint unsettled_reason_known check (reason in ('discarded', 'unaccounted')),
    -- How many values the counter had counted, and how many were found so far. Where fewer are
    -- found in the end, rows were deleted, and the row stays.
    journaled bigint not null,
    found bigint not null,
    noted_at_us bigint not null,
    constraint unsettled_in_order check (after_value <= upto_value)
);

-- The date of the last number of each family of counters whose series asks for chronology: the
-- counters that differ in their period alone. The row is the lock under which dates are compared,
-- because two counters of a family may be taken from at once. Where there is no row, the journal
-- tells the date.
create table chronology (
    series_id bigint not null,
    serial text collate "C" not null,
    family text collate "C" not null,
    last_date text collate "C" not null,
    constraint chronology_pk primary key (series_id, serial, family)
);

-- A family whose last date is still being looked for: how far the search has come, and what it has
-- found. The row goes when `chronology` has the date.
create table chronology_search (
    series_id bigint not null,
    serial text collate "C" not null,
    family text collate "C" not null,
    last_date text collate "C" not null,
    key text collate "C" not null,
    value bigint not null,
    constraint chronology_search_pk primary key (series_id, serial, family)
);

-- Since when a request without a date is asked, near a day on which another series takes over: two
-- clocks, or a retry after midnight, do not give it two series (F40). Written by whoever asks for
-- such a number; goes with requests of a later such day.
create table undated_request (
    -- A hash of the caller's key or the document, and of the series that take turns.
    name bigint not null constraint undated_request_pk primary key,
    asked_at_us bigint not null,
    turn_us bigint not null
);
create index undated_request_turn on undated_request (turn_us);
