-- Changes of counters that two people answer for (R3.5): one asks, another approves, and only then
-- something is done, once. What is jumped over goes to the gap register with a reason of its own.
-- SQLite cannot alter a condition. It may be edited in the schema where the rows there are keep it,
-- as these do; nothing else is touched, and no table is written anew however long it is.
-- old binary: refuses to start (the schema is newer than it knows). One that runs already knows no
-- request, and cannot read a gap that a change left

create table change_request (
    change_request_id integer constraint change_request_pk primary key,
    series_id integer not null,
    -- Of dates, any one of the counters that share them.
    counter_id integer not null,
    -- The step of the serial: when it was asked for, or made.
    step integer not null constraint change_request_step_at_least_1 check (step >= 1),
    -- Of a counter, the value that is to come next, and where it stood when that was done.
    next_value integer,
    stood_at integer,
    -- Of dates: whose, the last that is to count, the one before that, and how many records are
    -- dated later.
    family text,
    last_date text,
    stood_on text,
    dated_later integer,
    reason text not null,
    requested_by text not null,
    requested_at_us integer not null,
    expires_at_us integer not null,
    state text not null constraint change_request_state_known
        check (state in ('pending', 'approved', 'rejected')),
    decided_by text,
    decided_at_us integer,
    decision_reason text,
    constraint change_request_wants_one check ((next_value is null) = (last_date is not null)),
    constraint change_request_dates_whole check ((family is null) = (last_date is null)),
    constraint change_request_decided_whole check ((state = 'pending') = (decided_by is null)
        and (decided_by is null) = (decided_at_us is null)),
    -- The one rule of it, whatever a program does.
    constraint change_request_two_people check (state <> 'approved' or decided_by <> requested_by)
) strict;
-- What explains a gap.
create index change_request_counter on change_request (counter_id);

pragma writable_schema = on;
update sqlite_schema
set sql = replace(sql, '''before-import'')', '''before-import'', ''skipped'')')
where type = 'table' and name = 'gap';
pragma writable_schema = reset;
