-- Checkpoints that bind the record, and the files that old rows of the journal moved to.
-- A run of archived rows of one counter makes room for a segment: one row of the journal with the
-- same first and last value and the same step, without a number, whose context names the file. So
-- each value stays accounted for as it was, and none comes twice.
-- old binary: ok (there is none)

-- What a process with the private key has seen, signed. Each names the one before. Only added to.
create table checkpoint (
    checkpoint_no bigint constraint checkpoint_pk primary key,
    -- In JSON; its form is described in docs/record.md.
    body text not null,
    public_key bytea not null,
    signature bytea not null
);
create trigger checkpoint_stays before update or delete on checkpoint
    for each row execute function must_stay_as_it_is();
create trigger checkpoint_is_not_emptied before truncate on checkpoint
    for each statement execute function must_stay_as_it_is();

-- The files of archived rows. Written by `numerator archive`. What a file holds is said by its
-- manifest, which is signed where there is a key.
create table archive_file (
    archive_file_id integer generated always as identity constraint archive_file_pk primary key,
    name text collate "C" not null constraint archive_file_name_once unique,
    sha256 bytea not null,
    row_count bigint not null constraint archive_file_has_rows check (row_count > 0),
    manifest text not null,
    -- Its rows are older than this time.
    before_us bigint not null,
    last_issued_us bigint not null,
    written_by text not null,
    written_at_us bigint not null,
    -- When the last of its rows made room; null while that is under way.
    ended_at_us bigint,
    -- When it was said that the file is deleted, by whom, and why.
    deleted_at_us bigint,
    deleted_by text,
    deleted_reason text,
    constraint archive_file_deleted_whole check ((deleted_at_us is null) = (deleted_by is null)
        and (deleted_at_us is null) = (deleted_reason is null))
);
-- One at a time.
create unique index archive_file_under_way on archive_file ((true)) where ended_at_us is null;

-- By what an archived number is found: its text, its document and its project, each by a part of
-- its SHA-256. Not unique: two texts may have one hash, and a document several numbers. Goes with
-- the entry of its file.
create table archived_number (
    number_hash bigint not null,
    document_hash bigint,
    counter_id bigint not null,
    archive_file_id integer not null,
    -- Only in series that keep the documents of projects apart.
    project_hash bigint
);
create index archived_number_number on archived_number (number_hash);
create index archived_number_document on archived_number (document_hash)
    where document_hash is not null;

-- A row of the journal is removed only where, once the transaction ends, a segment of the file that
-- is under way stands for all of its values. A segment whose batch has no proof is named by
-- `numerator audit verify`.
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
create constraint trigger journal_is_not_removed after delete on journal
    deferrable initially immediate for each row execute function must_be_archived();

-- Makes room for a segment, and says how many rows went. A role that writes the journal without
-- owning it may remove rows by this alone, and only those that a segment stands for.
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
