-- Numbers that were given by hand and registered: the path of their rows is `registered`.
-- SQLite cannot alter a condition. It may be edited in the schema where the rows there are keep it,
-- as these do; nothing else is touched, and no table is written anew however long it is.
-- old binary: refuses to start (the schema is newer than it knows). One that runs already goes on,
-- and cannot read such a row.

pragma writable_schema = on;
update sqlite_schema
set sql = replace(sql, '(path in (''database'', ''imported''))',
    '(path in (''database'', ''imported'', ''registered''))')
where type = 'table' and name = 'journal';
pragma writable_schema = reset;
