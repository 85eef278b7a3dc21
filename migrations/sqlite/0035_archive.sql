-- Rows of the journal that moved to files, and what stands for them. A run of rows of one counter
-- makes room for a segment: one row of the journal with the same first and last value and the same
-- step, without a number, whose context names the file. So each value stays accounted for as it was,
-- and none comes twice.
-- old binary: refuses to start (the schema is newer than it knows)

-- The files. What a file holds is said by its manifest, which is signed where there is a key.
create table archive_file (
    archive_file_id integer constraint archive_file_pk primary key,
    name text not null constraint archive_file_name_once unique,
    sha256 blob not null,
    row_count integer not null constraint archive_file_has_rows check (row_count > 0),
    manifest text not null,
    -- Rows from before this time.
    before_us integer not null,
    last_issued_us integer not null,
    written_by text not null,
    written_at_us integer not null,
    -- When the last of its rows made room; null while that is under way.
    ended_at_us integer,
    -- When somebody said that the file is deleted, who, and why.
    deleted_at_us integer,
    deleted_by text,
    deleted_reason text,
    constraint archive_file_deleted_whole check ((deleted_at_us is null) = (deleted_by is null)
        and (deleted_at_us is null) = (deleted_reason is null))
) strict;
-- One at a time.
create unique index archive_file_under_way on archive_file (coalesce(ended_at_us, 0))
    where ended_at_us is null;

-- What is looked for of archived numbers: the number and its document by a part of their SHA-256.
-- Not unique: two texts may have one, and a document several numbers.
create table archived_number (
    number_hash integer not null,
    document_hash integer,
    counter_id integer not null,
    archive_file_id integer not null
) strict;
create index archived_number_number on archived_number (number_hash);
create index archived_number_document on archived_number (document_hash)
    where document_hash is not null;

-- As before, but for segments.
drop view journal_row;
create view journal_row as
select j.counter_id, j.first_value,
    coalesce(j.last_value, j.first_value) as last_value,
    coalesce(j.step, 1) as step,
    j.allocation_id, j.number, j.scope, j.mask, j.outline, j.rest,
    k.series_id, k.version, k.type_code, k.project,
    j.document_id,
    j.document_day as document_date,
    j.context,
    u.name as user_id,
    a.name as ip_address,
    j.idempotency_key,
    lower(coalesce(hex(j.digest), '')) as payload_digest,
    j.issued_at_us,
    coalesce(j.retry_count, 0) as retry_count,
    case when j.number is null and j.context is not null then 'archived'
        else coalesce(j.path, 'redis') end as path,
    b.partition_id, b.epoch, b.node_id, b.journaled_at_us,
    j.batch_id, j.user_name_id,
    j.rowid as row_id
from journal j
left join journal_batch b on b.batch_id = j.batch_id
left join journal_kind k on k.kind_id = j.kind_id
left join journal_name u on u.name_id = j.user_name_id
left join journal_name a on a.name_id = j.address_name_id;

-- A row is removed only while a transaction makes room for a segment: of these values. Empty but
-- within such a transaction.
create table making_room (
    counter_id integer not null,
    first_value integer not null,
    last_value integer not null
) strict;
drop trigger journal_is_not_removed;
create trigger journal_is_not_removed before delete on journal
when not exists (select 1 from making_room m where m.counter_id = old.counter_id
    and old.first_value between m.first_value and m.last_value)
begin
    select raise(abort, 'journal keeps its rows as they are');
end;
