-- Room for the next state of a counter's row is a matter of PostgreSQL: here a row is written in its
-- place.
-- old binary: refuses to start (the schema is newer than it knows). One that runs already goes on.

select 1;
