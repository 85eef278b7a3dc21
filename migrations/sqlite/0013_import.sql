-- Numbers that another system has issued (R9.5): no path of ours took them, and the values below
-- them that nobody brought along are gaps with a reason of their own.
-- SQLite cannot alter a condition. It may be edited in the schema where the rows there are keep it,
-- as these do; nothing else is touched, and no table is written anew however long it is.
-- old binary: refuses to start (the schema is newer than it knows); one that still runs cannot read
-- imported rows, so an import waits until none does

pragma writable_schema = on;
update sqlite_schema
set sql = replace(sql, '(''redis'', ''database'')', '(''redis'', ''database'', ''imported'')')
where type = 'table' and name = 'journal';
update sqlite_schema
set sql = replace(sql, '''unaccounted'', ''collided'')',
    '''unaccounted'', ''collided'', ''before-import'')')
where type = 'table' and name = 'gap';
pragma writable_schema = reset;
