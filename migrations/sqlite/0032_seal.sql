-- The seal of a journal batch, checkpoints that bind seals, and rows that nobody changes any more.
-- Batches of before have no seal: the first checkpoint binds their rows as a whole.
-- old binary: refuses to start (the schema is newer than it knows)

alter table journal_batch add column line_count integer;
-- SHA-256 over what the rows say.
alter table journal_batch add column seal blob;
-- HMAC-SHA-256 of the seal, by a key that the file never sees.
alter table journal_batch add column proof blob;

-- What somebody with a private key has seen, signed. Each names the one before.
create table checkpoint (
    checkpoint_no integer constraint checkpoint_pk primary key,
    body text not null,
    public_key blob not null,
    signature blob not null
) strict;

-- Refuse whatever changes or removes a row. Who may write the file can take them away, and is found
-- by `numerator audit verify`.
create trigger journal_stays before update on journal
begin
    select raise(abort, 'journal keeps its rows as they are');
end;
create trigger journal_is_not_removed before delete on journal
begin
    select raise(abort, 'journal keeps its rows as they are');
end;
create trigger journal_batch_stays before update on journal_batch
begin
    select raise(abort, 'journal_batch keeps its rows as they are');
end;
create trigger journal_batch_is_not_removed before delete on journal_batch
begin
    select raise(abort, 'journal_batch keeps its rows as they are');
end;
create trigger journal_kind_stays before update on journal_kind
begin
    select raise(abort, 'journal_kind keeps its rows as they are');
end;
create trigger journal_kind_is_not_removed before delete on journal_kind
begin
    select raise(abort, 'journal_kind keeps its rows as they are');
end;
create trigger journal_name_stays before update on journal_name
begin
    select raise(abort, 'journal_name keeps its rows as they are');
end;
create trigger journal_name_is_not_removed before delete on journal_name
begin
    select raise(abort, 'journal_name keeps its rows as they are');
end;
create trigger checkpoint_stays before update on checkpoint
begin
    select raise(abort, 'checkpoint keeps its rows as they are');
end;
create trigger checkpoint_is_not_removed before delete on checkpoint
begin
    select raise(abort, 'checkpoint keeps its rows as they are');
end;
