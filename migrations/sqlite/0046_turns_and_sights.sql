-- A request that says no date is the request that it was (F40): near a day on which another series
-- takes over, the ledger has since when it is asked, so that two clocks do not give it two series.
-- And each process says which series, tables and tokens it knows, so that whoever saves some hears
-- when all processes have them.
-- old binary: refuses to start (the schema is newer than it knows). One that runs already dates such
-- a request by its own clock, and says nothing of what it knows.

create table undated_request (
    -- A hash of the caller's key or the document, and of the series that take turns.
    name integer not null constraint undated_request_pk primary key,
    asked_at_us integer not null,
    turn_us integer not null
) strict;
create index undated_request_turn on undated_request (turn_us);

alter table node add column series_known integer;
alter table node add column reference_known integer;
alter table node add column tokens_known integer;
