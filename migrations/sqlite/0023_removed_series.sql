-- A series that never had a counter may be removed. Its row and its versions stay: an id names one
-- series for ever, who saved and removed it is on record, and what it took from others comes to
-- these only once they are proved for it, as of any series that rests. Its code is free: here it
-- stands with the id behind it, which no code looks like.
-- old binary: refuses to start (the schema is newer than it knows). One that runs already lists it
-- as deactivated, and can be asked to activate it: remove none before it is gone.

alter table series add column removed_at_us integer;
