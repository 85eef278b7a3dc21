-- On PostgreSQL a change request begins unanswered, and is answered once, whatever somebody writes
-- who does not own the table. A file belongs to whoever may write it: here nothing changes.
-- old binary: refuses to start (the schema is newer than it knows). One that runs already goes on.

select 1;
