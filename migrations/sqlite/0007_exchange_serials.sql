-- What became of exchange serials: which interface serials were seen, and how far the step of each
-- system serial has come. Each serial has one row, which is the fence: whoever inserted or changed
-- that row may run the call. None of it is in Redis, so no loss of Redis can let a step run twice.
-- old binary: ok (there is none)

-- Interface serials that were accepted. Written by the call that accepts one, and by each
-- repetition.
create table interface_check (
    serial text not null constraint interface_check_pk primary key,
    accepted_at_us integer not null,
    accepted_by text not null,
    -- The `Idempotency-Key` of that call: its repetition is no repetition of the serial.
    accepted_key text,
    repeats integer not null default 0
        constraint interface_check_repeats_not_negative check (repeats >= 0),
    repeated_at_us integer,
    constraint interface_check_repeat_has_time check ((repeats = 0) = (repeated_at_us is null))
) strict;

-- The attempts of each step, the last one whole. Written by the calls that begin and end one. An
-- attempt never ends by time.
create table system_step (
    serial text not null constraint system_step_pk primary key,
    unified_serial text,
    state text not null
        constraint system_step_state_known check (state in ('in-progress', 'succeeded', 'failed')),
    attempt integer not null constraint system_step_attempt_at_least_1 check (attempt >= 1),
    begun_at_us integer not null,
    begun_by text not null,
    begun_key text,
    ended_at_us integer,
    ended_by text,
    -- JSON, as the caller wrote it.
    result text,
    reason text,
    constraint system_step_ends_with_time check ((state = 'in-progress') = (ended_at_us is null)),
    constraint system_step_ends_by_somebody check ((ended_at_us is null) = (ended_by is null)),
    constraint system_step_result_of_success check (result is null or state = 'succeeded'),
    constraint system_step_reason_of_failure check ((reason is not null) = (state = 'failed'))
) strict;

-- What happened to serials. Only added to.
create table serial_event (
    serial_event_id integer constraint serial_event_pk primary key,
    serial text not null,
    unified_serial text,
    kind text not null constraint serial_event_kind_known
        check (kind in ('accepted', 'begun', 'succeeded', 'failed')),
    attempt integer,
    at_us integer not null,
    user_id text not null,
    ip_address text,
    reason text,
    constraint serial_event_attempt_of_step check ((kind = 'accepted') = (attempt is null))
) strict;
-- The chain of a unified serial in the order of time.
create index serial_event_unified on serial_event (unified_serial, at_us)
    where unified_serial is not null;
