-- Rows of the journal that moved to files, and what stands for them. A run of rows of one counter
-- makes room for a segment: one row of the journal with the same first and last value and the same
-- step, without a number, whose context names the file. So each value stays accounted for as it was,
-- and none comes twice.
-- old binary: refuses to start (the schema is newer than it knows); one that runs already goes on,
-- and does not know that the documents of archived numbers have one

-- The files. What a file holds is said by its manifest, which is signed where there is a key.
create table archive_file (
    archive_file_id integer generated always as identity constraint archive_file_pk primary key,
    name text collate "C" not null constraint archive_file_name_once unique,
    sha256 bytea not null,
    row_count bigint not null constraint archive_file_has_rows check (row_count > 0),
    manifest text not null,
    -- Rows from before this time.
    before_us bigint not null,
    last_issued_us bigint not null,
    written_by text not null,
    written_at_us bigint not null,
    -- When the last of its rows made room; null while that is under way.
    ended_at_us bigint,
    -- When somebody said that the file is deleted, who, and why.
    deleted_at_us bigint,
    deleted_by text,
    deleted_reason text,
    constraint archive_file_deleted_whole check ((deleted_at_us is null) = (deleted_by is null)
        and (deleted_at_us is null) = (deleted_reason is null))
);
-- One at a time.
create unique index archive_file_under_way on archive_file ((true)) where ended_at_us is null;

-- What is looked for of archived numbers: the number and its document by a part of their SHA-256.
-- Not unique: two texts may have one, and a document several numbers.
create table archived_number (
    number_hash bigint not null,
    document_hash bigint,
    counter_id bigint not null,
    archive_file_id integer not null
);
create index archived_number_number on archived_number (number_hash);
create index archived_number_document on archived_number (document_hash)
    where document_hash is not null;

-- As before, but for segments.
create or replace view journal_row as
select j.counter_id, j.first_value,
    coalesce(j.last_value, j.first_value) as last_value,
    coalesce(j.step, 1) as step,
    j.allocation_id, j.number, j.scope, j.mask, j.outline, j.rest,
    coalesce(j.series_id, k.series_id) as series_id,
    coalesce(j.version, k.version) as version,
    coalesce(j.type_code, k.type_code) as type_code,
    coalesce(j.project, k.project) as project,
    j.document_id,
    coalesce(j.document_date, to_char(j.document_day, 'YYYY-MM-DD')) as document_date,
    j.context,
    coalesce(j.user_id, u.name) as user_id,
    coalesce(j.ip_address, a.name) collate "C" as ip_address,
    j.idempotency_key,
    coalesce(j.payload_digest, encode(j.digest, 'hex'), '') as payload_digest,
    j.issued_at_us,
    coalesce(j.retry_count, 0) as retry_count,
    case when j.number is null and j.context is not null then 'archived'
        else coalesce(j.path, 'redis') end as path,
    coalesce(j.partition_id, b.partition_id) as partition_id,
    coalesce(j.epoch, b.epoch) as epoch,
    coalesce(j.node_id, b.node_id) as node_id,
    coalesce(j.journaled_at_us, b.journaled_at_us) as journaled_at_us,
    j.batch_id, j.user_name_id,
    j.xmin as written_by
from journal j
left join journal_batch b on b.batch_id = j.batch_id
left join journal_kind k on k.kind_id = j.kind_id
left join journal_name u on u.name_id = j.user_name_id
left join journal_name a on a.name_id = j.address_name_id;

-- A row is removed only where a segment stands for all of its values once the transaction ends, of
-- the file that is under way. Whose batch has no proof is named by `numerator audit verify`.
do $do$ begin
execute format($make$
create function must_be_archived() returns trigger
language plpgsql set search_path = %1$I, pg_temp as $body$
begin
    if not coalesce((select s.number is null and s.context is not null
            and coalesce(s.last_value, s.first_value) >= coalesce(old.last_value, old.first_value)
            and exists (select 1 from %1$I.archive_file f where f.ended_at_us is null
                and substring(f.sha256 for 16) = s.allocation_id)
            from %1$I.journal s where s.counter_id = old.counter_id
            and s.first_value <= old.first_value order by s.first_value desc limit 1), false) then
        raise exception
            '%% keeps its rows as they are: no segment stands for the value %% of counter %%',
            tg_table_name, old.first_value, old.counter_id using errcode = 'restrict_violation';
    end if;
    return null;
end
$body$ $make$, current_schema());
end $do$;
drop trigger journal_is_not_removed on journal;
create constraint trigger journal_is_not_removed after delete on journal
    deferrable initially immediate for each row execute function must_be_archived();

-- Makes room for a segment; how many rows went. Whoever writes the journal without owning it may
-- remove rows by this alone, and only those that a segment stands for.
do $do$ begin
execute format($make$
create function make_room(of_counter bigint, first bigint, last bigint) returns bigint
language plpgsql security definer set search_path = %1$I, pg_temp as $body$
declare
    gone bigint;
begin
    set constraints %1$I.journal_is_not_removed deferred;
    delete from %1$I.journal where counter_id = of_counter and first_value >= first
        and first_value <= last;
    get diagnostics gone = row_count;
    return gone;
end
$body$ $make$, current_schema());
end $do$;
revoke all on function make_room(bigint, bigint, bigint) from public;
