-- Rows of nodes that ended long ago go. What their processes left word of outside of the ledger is
-- compared with it when a process starts: then a row that was swept must not look like one that the
-- ledger has forgotten (F25). A word says when it was confirmed, and the ledger until when words may
-- be of nodes that it has swept.
-- old binary: refuses to start (the schema is newer than it knows). One that runs already leaves
-- words without a time, and its row stays.

-- Whether the process of the node says when it was confirmed what.
alter table node add column is_dated boolean not null default false;
-- What was confirmed up to then may be of a node that was swept; 0: none was.
alter table deployment add column nodes_swept_us bigint not null default 0;
