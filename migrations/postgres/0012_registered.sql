-- Numbers that were given by hand and registered: the path of their rows is `registered`.
-- old binary: refuses to start (the schema is newer than it knows). One that runs already goes on,
-- and cannot read such a row.

alter table journal drop constraint journal_path_known, add constraint journal_path_known
    check (path in ('database', 'imported', 'registered')) not valid;
