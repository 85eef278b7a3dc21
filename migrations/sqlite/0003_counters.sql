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
    counter_id integer constraint counter_pk primary key,
    series_id integer not null,
    -- The name of the serial, not its place: a new version may list its serials in another order.
    serial text not null constraint counter_serial_not_empty check (serial <> ''),
    key text not null,
    partition_id integer not null,
    epoch integer not null constraint counter_epoch_not_negative check (epoch >= 0),
    origin integer not null,
    start_value integer not null,
    taken integer not null,
    ceiling integer not null,
    step integer not null constraint counter_step_at_least_1 check (step >= 1),
    -- Values above `start_value` that the journal has: what is missing at the end of an epoch is
    -- looked for only where this is less than was taken.
    journaled integer not null default 0
        constraint counter_journaled_not_negative check (journaled >= 0),
    seeded_by blob not null,
    seeded_at_us integer not null,
    constraint counter_name unique (series_id, serial, key),
    -- Always true: a value found above the ceiling lifts the ceiling with it.
    constraint counter_in_order
        check (origin <= start_value and start_value <= taken and taken <= ceiling)
) strict;

-- Values that will not be issued any more, and why. Written where an epoch is settled, by imports
-- and by approved change requests. A row shrinks or goes where a record of its values turns up.
create table gap (
    gap_id integer constraint gap_pk primary key,
    counter_id integer not null,
    first_value integer not null,
    last_value integer not null,
    step integer not null constraint gap_step_at_least_1 check (step >= 1),
    reason text not null constraint gap_reason_known check (reason in
        ('discarded', 'unaccounted', 'collided', 'before-import', 'skipped')),
    epoch integer not null,
    noted_at_us integer not null,
    -- No value twice; also the probe for gaps that a late row fills.
    constraint gap_value_once unique (counter_id, first_value),
    constraint gap_range_in_order check (first_value <= last_value)
) strict;

-- Values of closed epochs that are still to be looked through for what is missing. Written where a
-- counter begins in a later epoch; a background job works on it in slices that commit one by one,
-- because an epoch may have been longer than any call may take. Until then its missing values stand
-- in no other table.
create table unsettled (
    unsettled_id integer constraint unsettled_pk primary key,
    counter_id integer not null,
    epoch integer not null,
    -- Looked through up to here,
    after_value integer not null,
    -- to be looked through up to here.
    upto_value integer not null,
    step integer not null constraint unsettled_step_at_least_1 check (step >= 1),
    -- The reason of the gaps that it finds.
    reason text not null
        constraint unsettled_reason_known check (reason in ('discarded', 'unaccounted')),
    -- How many values the counter had counted, and how many were found so far. Where fewer are
    -- found in the end, rows were deleted, and the row stays.
    journaled integer not null,
    found integer not null,
    noted_at_us integer not null,
    constraint unsettled_in_order check (after_value <= upto_value)
) strict;

-- The date of the last number of each family of counters whose series asks for chronology: the
-- counters that differ in their period alone. The row is the lock under which dates are compared,
-- because two counters of a family may be taken from at once. Where there is no row, the journal
-- tells the date.
create table chronology (
    series_id integer not null,
    serial text not null,
    family text not null,
    last_date text not null,
    constraint chronology_pk primary key (series_id, serial, family)
) strict;

-- A family whose last date is still being looked for: how far the search has come, and what it has
-- found. The row goes when `chronology` has the date.
create table chronology_search (
    series_id integer not null,
    serial text not null,
    family text not null,
    last_date text not null,
    key text not null,
    value integer not null,
    constraint chronology_search_pk primary key (series_id, serial, family)
) strict;

-- Since when a request without a date is asked, near a day on which another series takes over: two
-- clocks, or a retry after midnight, do not give it two series (F40). Written by whoever asks for
-- such a number; goes with requests of a later such day.
create table undated_request (
    -- A hash of the caller's key or the document, and of the series that take turns.
    name integer not null constraint undated_request_pk primary key,
    asked_at_us integer not null,
    turn_us integer not null
) strict;
create index undated_request_turn on undated_request (turn_us);
