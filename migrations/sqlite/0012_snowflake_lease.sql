-- The node numbers of `{SNOWFLAKE}` ids: who holds each, and up to which time. Every id of a number
-- has a time below its `until_ms`, and whoever takes a number over starts there: so a holder that
-- slept, or whose clock jumped, never gives an id that another one gives (F23).
-- A number is free when nobody holds it, or its holder has left or was adopted.
-- old binary: refuses to start (the schema is newer than it knows)

create table snowflake_lease (
    node_number integer not null constraint snowflake_lease_pk primary key
        constraint snowflake_lease_number_has_10_bits check (node_number between 0 and 1023),
    -- The node that took it last.
    holder blob,
    -- Milliseconds of UTC since 1970.
    until_ms integer not null default 0
) strict;

with recursive number (n) as (select 0 union all select n + 1 from number where n < 1023)
insert into snowflake_lease (node_number) select n from number;
