-- Checkpoints that bind the record, and the files that old rows of the journal moved to.
-- A run of archived rows of one counter makes room for a segment: one row of the journal with the
-- same first and last value and the same step, without a number, whose context names the file. So
-- each value stays accounted for as it was, and none comes twice.
-- old binary: ok (there is none)

-- What a process with the private key has seen, signed. Each names the one before. Only added to.
create table checkpoint (
    checkpoint_no integer constraint checkpoint_pk primary key,
    -- In JSON; its form is described in docs/record.md.
    body text not null,
    public_key blob not null,
    signature blob not null
) strict;
create trigger checkpoint_stays before update on checkpoint
begin
    select raise(abort, 'checkpoint keeps its rows as they are');
end;
create trigger checkpoint_is_not_removed before delete on checkpoint
begin
    select raise(abort, 'checkpoint keeps its rows as they are');
end;

-- The files of archived rows. Written by `numerator archive`. What a file holds is said by its
-- manifest, which is signed where there is a key.
create table archive_file (
    archive_file_id integer constraint archive_file_pk primary key,
    name text not null constraint archive_file_name_once unique,
    sha256 blob not null,
    row_count integer not null constraint archive_file_has_rows check (row_count > 0),
    manifest text not null,
    -- Its rows are older than this time.
    before_us integer not null,
    last_issued_us integer not null,
    written_by text not null,
    written_at_us integer not null,
    -- When the last of its rows made room; null while that is under way.
    ended_at_us integer,
    -- When it was said that the file is deleted, by whom, and why.
    deleted_at_us integer,
    deleted_by text,
    deleted_reason text,
    constraint archive_file_deleted_whole check ((deleted_at_us is null) = (deleted_by is null)
        and (deleted_at_us is null) = (deleted_reason is null))
) strict;
-- One at a time.
create unique index archive_file_under_way on archive_file (coalesce(ended_at_us, 0))
    where ended_at_us is null;

-- By what an archived number is found: its text, its document and its project, each by a part of
-- its SHA-256. Not unique: two texts may have one hash, and a document several numbers. Goes with
-- the entry of its file.
create table archived_number (
    number_hash integer not null,
    document_hash integer,
    counter_id integer not null,
    archive_file_id integer not null,
    -- Only in series that keep the documents of projects apart.
    project_hash integer
) strict;
create index archived_number_number on archived_number (number_hash);
create index archived_number_document on archived_number (document_hash)
    where document_hash is not null;

-- A row of the journal is removed only while a transaction makes room for a segment: of these
-- values. Empty but within such a transaction.
create table making_room (
    counter_id integer not null,
    first_value integer not null,
    last_value integer not null
) strict;
create trigger journal_is_not_removed before delete on journal
when not exists (select 1 from making_room m where m.counter_id = old.counter_id
    and old.first_value between m.first_value and m.last_value)
begin
    select raise(abort, 'journal keeps its rows as they are');
end;
