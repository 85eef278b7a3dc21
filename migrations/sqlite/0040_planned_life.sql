-- What a statement's plan costs is a matter of PostgreSQL: here no function of the ledger is asked.
-- old binary: refuses to start (the schema is newer than it knows). One that runs already goes on.

select 1;
