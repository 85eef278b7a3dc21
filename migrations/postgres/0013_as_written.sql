-- Numbers that are kept as written, in a form that no template reads: the path of their rows is
-- `as-written`, and the serial of their counters too.
-- old binary: refuses to start (the schema is newer than it knows). One that runs already goes on,
-- cannot read such a row, and saves series that read its text.

alter table journal drop constraint journal_path_known, add constraint journal_path_known
    check (path in ('database', 'imported', 'registered', 'as-written')) not valid;
