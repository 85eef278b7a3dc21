-- A document on one number of a range: an act `assigned` of `life`, once for each value, and the
-- way from the document to the number. Both rows are written in one transaction.
-- SQLite cannot alter a condition. It may be edited in the schema where the rows there are keep it,
-- as these do; nothing else is touched, and no table is written anew however long it is.
-- old binary: refuses to start (the schema is newer than it knows). One that runs already would
-- give such a document a second number, and archive such a range: nothing is assigned while one
-- lives.

pragma writable_schema = on;
update sqlite_schema
set sql = replace(replace(replace(sql, '''registered''))', '''registered'', ''assigned''))'),
    '(''voided'', ''replaced'')', '(''voided'', ''replaced'', ''assigned'')'),
    'or other is not null)
) strict', 'or other is not null),
    constraint life_names_its_document check (act <> ''assigned'' or document_id is not null)
) strict')
where type = 'table' and name = 'life';
pragma writable_schema = reset;

create table if not exists assignment (
    -- The value of the number, of the first serial.
    counter_id integer not null,
    value integer not null,
    -- The first value of the range's row of the journal.
    row_first integer not null,
    series_id integer not null,
    project text,
    -- Who took the range: the number is visible to whom the range is.
    user_id text not null,
    number text not null,
    document_id text not null,
    -- What it is found by, hashed.
    document_hash integer not null,
    assigned_at_us integer not null,
    constraint assignment_pk primary key (counter_id, value),
    -- Also the way from a document to its numbers.
    constraint assignment_document unique (document_hash, counter_id, value),
    constraint assignment_within_its_range check (row_first <= value)
) strict;

create trigger if not exists assignment_stays before update on assignment
begin
    select raise(abort, 'assignment keeps its rows as they are');
end;
create trigger if not exists assignment_is_not_removed before delete on assignment
begin
    select raise(abort, 'assignment keeps its rows as they are');
end;
