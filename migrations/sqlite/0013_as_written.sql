-- Numbers that are kept as written, in a form that no template reads: the path of their rows is
-- `as-written`, and the serial of their counters too.
-- SQLite cannot alter a condition. It may be edited in the schema where the rows there are keep it,
-- as these do; nothing else is touched, and no table is written anew however long it is.
-- old binary: refuses to start (the schema is newer than it knows). One that runs already goes on,
-- cannot read such a row, and saves series that read its text.

pragma writable_schema = on;
update sqlite_schema
set sql = replace(sql, '(path in (''database'', ''imported'', ''registered''))',
    '(path in (''database'', ''imported'', ''registered'', ''as-written''))')
where type = 'table' and name = 'journal';
pragma writable_schema = reset;
