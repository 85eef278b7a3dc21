-- Tokens of the ledger, and changes that two people answer for.
-- old binary: ok (there is none)

-- Who may call, beside the tokens of the settings. A secret is never here, only its SHA-256.
-- Written by whoever creates, rotates or revokes a token, and, after a use, by the process that let
-- it in. A name has one row for ever, a revoked token's too: it is the `user_id` of the journal.
create table token (
    token_id integer constraint token_pk primary key,
    name text not null constraint token_name_once unique,
    sha256 blob not null constraint token_secret_once unique
        constraint token_secret_hashed check (length(sha256) = 32),
    -- The secret before the last rotation, and until when it is accepted.
    former_sha256 blob constraint token_former_secret_once unique,
    former_until_us integer,
    -- Lists of words and codes, in JSON.
    roles text not null,
    series text not null,
    projects text not null,
    -- Most numbers of one call.
    count_max integer constraint token_count_at_least_1 check (count_max >= 1),
    requests_per_minute integer
        constraint token_requests_at_least_1 check (requests_per_minute >= 1),
    -- Whether it may name the person it asks for.
    speaks_for_people integer not null default 0,
    expires_at_us integer,
    created_by text not null,
    created_at_us integer not null,
    revoked_by text,
    revoked_at_us integer,
    -- About: it is written a while after the use.
    last_used_at_us integer,
    constraint token_former_whole check ((former_sha256 is null) = (former_until_us is null)),
    constraint token_revoked_by_somebody check ((revoked_by is null) = (revoked_at_us is null))
) strict;

-- Rises with each change of any token, by which running processes notice it. The one row, made
-- here, is the lock of whoever changes tokens.
create table token_stamp (
    token_stamp_id integer constraint token_stamp_pk primary key
        constraint token_stamp_one check (token_stamp_id = 1),
    stamp integer not null
) strict;
insert into token_stamp (token_stamp_id, stamp) values (1, 0);

-- Changes of counters that two people answer for: one asks, another approves, and only then
-- something is done, once. A request begins unanswered and is answered once; no row goes. No
-- trigger keeps that: a file belongs to whoever may write it.
create table change_request (
    change_request_id integer constraint change_request_pk primary key,
    series_id integer not null,
    -- Of dates, any one of the counters that share them.
    counter_id integer not null,
    -- The step of the serial: when it was asked for, or made.
    step integer not null constraint change_request_step_at_least_1 check (step >= 1),
    -- Of a counter: the value that is to come next, and where it stood when that was done.
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
    -- Who asked and who approved as people read their names, the identity and the person of each:
    -- folded (NFKC, lower case, without invisible characters), issuer and services aside. Written
    -- with the answer.
    requested_identity text,
    requested_person text,
    decided_identity text,
    decided_person text,
    constraint change_request_wants_one check ((next_value is null) = (last_date is not null)),
    constraint change_request_dates_whole check ((family is null) = (last_date is null)),
    constraint change_request_decided_whole check ((state = 'pending') = (decided_by is null)
        and (decided_by is null) = (decided_at_us is null)),
    -- Two people, whatever a program does.
    constraint change_request_two_people check (state <> 'approved' or
        (requested_identity is not null and requested_person is not null
        and decided_identity is not null and decided_person is not null
        and requested_identity not in (decided_identity, decided_person)
        and requested_person not in (decided_identity, decided_person)))
) strict;
-- The request that explains a gap.
create index change_request_counter on change_request (counter_id);
