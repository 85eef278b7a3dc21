-- A token may speak for people, and may be held to so many requests a minute.
-- old binary: refuses to start (the schema is newer than it knows). One that runs already lets such
-- a token in as before: it speaks for nobody there, and is held to nothing
alter table token
    add column speaks_for_people boolean not null default false,
    add column requests_per_minute bigint
        constraint token_requests_at_least_1 check (requests_per_minute >= 1);
