-- The project of an archived number's document, eight bytes of its SHA-256, in series that keep the
-- documents of projects apart. Null in others, and where a process of an earlier version archived
-- it: such a number is the document's of any project.
-- old binary: refuses to start (the schema is newer than it knows). One that runs already goes on,
-- and keeps no project.

alter table archived_number add column project_hash integer;
