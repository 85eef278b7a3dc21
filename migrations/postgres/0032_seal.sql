-- The seal of a journal batch, checkpoints that bind seals, and rows that nobody changes any more.
-- Batches of before have no seal: the first checkpoint binds their rows as a whole.
-- old binary: refuses to start (the schema is newer than it knows). One that runs already goes on,
-- and what it writes has no seal

-- No row is read: what is added is empty.
alter table journal_batch
    add column line_count integer,
    -- SHA-256 over what the rows say.
    add column seal bytea,
    -- HMAC-SHA-256 of the seal, by a key that the database never sees.
    add column proof bytea;

-- What somebody with a private key has seen, signed. Each names the one before.
create table checkpoint (
    checkpoint_no bigint constraint checkpoint_pk primary key,
    body text not null,
    public_key bytea not null,
    signature bytea not null
);

-- Refuses whatever changes or removes a row. The owner of the tables can take it away, and is found
-- by `numerator audit verify`.
create function must_stay_as_it_is() returns trigger language plpgsql as $$
begin
    raise exception '% keeps its rows as they are: % is not for it', tg_table_name, tg_op
        using errcode = 'restrict_violation';
end
$$;

-- A row of an earlier version is turned over once (0025).
create trigger journal_stays before update on journal
    for each row when (old.batch_id is not null) execute function must_stay_as_it_is();
create trigger journal_is_not_removed before delete on journal
    for each row execute function must_stay_as_it_is();
create trigger journal_is_not_emptied before truncate on journal
    for each statement execute function must_stay_as_it_is();
create trigger journal_batch_stays before update or delete on journal_batch
    for each row execute function must_stay_as_it_is();
create trigger journal_batch_is_not_emptied before truncate on journal_batch
    for each statement execute function must_stay_as_it_is();
create trigger journal_kind_stays before update or delete on journal_kind
    for each row execute function must_stay_as_it_is();
create trigger journal_kind_is_not_emptied before truncate on journal_kind
    for each statement execute function must_stay_as_it_is();
create trigger journal_name_stays before update or delete on journal_name
    for each row execute function must_stay_as_it_is();
create trigger journal_name_is_not_emptied before truncate on journal_name
    for each statement execute function must_stay_as_it_is();
create trigger checkpoint_stays before update or delete on checkpoint
    for each row execute function must_stay_as_it_is();
create trigger checkpoint_is_not_emptied before truncate on checkpoint
    for each statement execute function must_stay_as_it_is();
