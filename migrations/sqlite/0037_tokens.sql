-- Tokens: who may call beside those of the settings. A secret is never here, only its SHA-256. A name
-- has one row for ever: it is the `user_id` of the journal. One that is revoked stays.
-- old binary: refuses to start (the schema is newer than it knows). One that runs already knows no
-- token of the ledger, and lets nobody in by one

create table token (
    token_id integer constraint token_pk primary key,
    name text not null constraint token_name_once unique,
    sha256 blob not null constraint token_secret_once unique
        constraint token_secret_hashed check (length(sha256) = 32),
    -- The secret of before the last rotation, and until when it is let in.
    former_sha256 blob constraint token_former_secret_once unique,
    former_until_us integer,
    -- Lists of words and codes, in JSON.
    roles text not null,
    series text not null,
    projects text not null,
    count_max integer constraint token_count_at_least_1 check (count_max >= 1),
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

-- Rises with each change of any token, by which running nodes notice it. The one row is the lock of
-- those who change them.
create table token_stamp (
    token_stamp_id integer constraint token_stamp_pk primary key
        constraint token_stamp_one check (token_stamp_id = 1),
    stamp integer not null
) strict;
insert into token_stamp (token_stamp_id, stamp) values (1, 0);
