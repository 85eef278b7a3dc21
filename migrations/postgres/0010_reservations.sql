-- Numbers that a document holds before it is final. A reserved value stands in `reservation` and in
-- no row of the journal until it is confirmed; one that ends unconfirmed returns to the gap
-- register with the reason `returned`, and is the next to be taken.
-- old binary: refuses to start (the schema is newer than it knows). One that runs already would
-- take reserved values for lost: nothing is reserved while one lives.

-- How many values ever came back, and how many of them left the register again. Both only rise.
-- `left_behind`: where a change or an import moved the counter up, the value it went on above. None
-- up to there comes back.
alter table counter
    add column returned bigint not null default 0,
    add column reissued bigint not null default 0,
    add column left_behind bigint,
    add constraint counter_pool_in_order check (0 <= reissued and reissued <= returned) not valid;

-- `cancelled` and `expired` are gaps for good, where a series keeps its order of dates.
alter table gap drop constraint gap_reason_known, add constraint gap_reason_known check (reason in
    ('discarded', 'unaccounted', 'collided', 'before-import', 'skipped', 'returned', 'cancelled',
    'expired')) not valid;

-- The newest migration that the program of the process knows; 0 of one that says nothing of it.
alter table node add column schema integer not null default 0;

-- Live reservations only: one that ends leaves a row of `life`, one that is confirmed a row of the
-- journal. Made by who takes numbers. Callers change the row of a reservation with one statement,
-- from `reserved` alone; the sweep removes it. The row is the fence between a caller's open
-- transaction and everybody else.
create table reservation (
    -- The allocation that the number will have.
    reservation_id bytea not null constraint reservation_pk primary key
        constraint reservation_id_is_an_id check (length(reservation_id) = 16),
    state text not null constraint reservation_state_known
        check (state in ('reserved', 'confirmed', 'cancelled')),
    -- By the ledger's clock: it cannot be confirmed from then on.
    expires_at_us bigint not null,
    counter_id bigint not null,
    first_value bigint not null,
    last_value bigint not null,
    step bigint not null constraint reservation_step_at_least_1 check (step >= 1),
    number text collate "C" not null,
    scope text collate "C" not null,
    series_id bigint not null,
    document_id text collate "C",
    user_id text collate "C" not null,
    -- Whether the value may be issued again once it ends: not where a series keeps its order of
    -- dates.
    returns integer not null constraint reservation_returns_known check (returns in (0, 1)),
    -- What its counter had as `taken` plus `reissued` once it was made. Both only rise: of two
    -- reservations of one counter the later one has more.
    turn bigint not null,
    -- The whole record, in JSON, as the journal is to have it.
    raw text not null,
    -- What it is found by, hashed.
    number_hash bigint not null,
    document_hash bigint,
    key_hash bigint,
    reserved_at_us bigint not null,
    changed_at_us bigint,
    changed_by text,
    reason text,
    constraint reservation_value_once unique (counter_id, first_value),
    constraint reservation_number_once unique (number, scope),
    constraint reservation_range_in_order check (first_value <= last_value),
    constraint reservation_changed_whole check ((state = 'reserved') = (changed_at_us is null)
        and (state = 'reserved') = (changed_by is null))
)
-- Few rows are live, and each leaves dead ones behind within minutes: a threshold that is a share
-- of the live rows says nothing. Questions whether any is reserved would read the dead ones.
with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
-- What a sweep looks for.
create index reservation_due on reservation (state, expires_at_us);
-- Whether a document or a caller's key has one, and whether a text is reserved.
create index reservation_document on reservation (document_hash) where document_hash is not null;
create index reservation_key on reservation (key_hash) where key_hash is not null;
create index reservation_number on reservation (number_hash);

-- Callers whose tables are in this database confirm and cancel within their own transactions: the
-- number is the document's if, and only if, that commits. Whoever owns the tables lends them the
-- right to one row by its id, 128 random bits; roles.sql says who may call them. In the life that
-- was agreed on alone, and never while a partition is held: a server that was promoted may show a
-- reservation whose number is another's since. A block, a reservation of several numbers, is refused
-- as one, also once it was handed back.
do $do$ begin
execute format($make$
create function confirm(reservation uuid, document text default null) returns text
language plpgsql security definer set search_path = %1$I, pg_temp as $body$
declare
    id constant bytea := uuid_send(reservation);
    told text;
    named text;
    was text;
begin
    perform must_be_incarnation((select nonce from incarnation));
    update %1$I.reservation as r set state = 'confirmed', changed_by = 'sql:' || session_user,
        changed_at_us = cast(extract(epoch from clock_timestamp()) * 1000000 as bigint)
    where r.reservation_id = id and r.state = 'reserved'
        and r.expires_at_us > cast(extract(epoch from clock_timestamp()) * 1000000 as bigint)
        and (document is null or r.document_id is not distinct from document)
        and exists (select from counter c join partition p on p.partition_id = c.partition_id
            where c.counter_id = r.counter_id and p.state <> 'held')
    returning r.number into told;
    if found then
        return told;
    end if;
    -- Each place is asked after the one from which a reservation goes there. Revisions, of counter
    -- 0, have the allocation of their number.
    select r.state, r.number, r.document_id into was, told, named
    from %1$I.reservation r where r.reservation_id = id;
    if not found then
        select 'confirmed', j.number, j.document_id into was, told, named
        from journal j where j.allocation_id = id and j.path = 'database'
            and j.number is not null and j.counter_id <> 0;
    end if;
    if not found then
        select l.act, null, l.document_id into was, told, named
        from life l where l.subject = id
            and l.act in ('cancelled', 'expired', 'lost', 'handed-back') limit 1;
    end if;
    if not found then
        raise exception 'there is no reservation %%', reservation using errcode = 'NU003',
            hint = 'reserve before the transaction begins, and after no later snapshot';
    end if;
    if was = 'handed-back' then
        raise exception 'reservation %% was a block, and was handed back', reservation
            using errcode = 'NU003', hint = 'its numbers are those that were handed back as used';
    end if;
    if was = 'reserved' and exists (select from %1$I.reservation r
            where r.reservation_id = id and r.first_value < r.last_value) then
        raise exception 'reservation %% is a block', reservation
            using errcode = 'NU003', hint = 'hand it back, or cancel it over HTTP';
    end if;
    if document is not null and named is distinct from document then
        raise exception 'reservation %% is for another document', reservation
            using errcode = 'NU003', hint = format('it is for %%s', coalesce(named, 'none'));
    end if;
    -- Who names the document repeats its own confirmation; anybody else would be a second one.
    if was = 'confirmed' and document is not null then
        return told;
    end if;
    if was = 'confirmed' then
        raise exception 'reservation %% is confirmed already', reservation using errcode = 'NU003',
            hint = 'name the document to have its number again';
    end if;
    if was = 'reserved' and exists (select from %1$I.reservation r
            join counter c on c.counter_id = r.counter_id
            join partition p on p.partition_id = c.partition_id
            where r.reservation_id = id and p.state = 'held') then
        raise exception 'reservation %%: the ledger is held until an operator acts', reservation
            using errcode = 'NU003', hint = 'try again once it is released';
    end if;
    raise exception 'reservation %% is over: %%', reservation,
        case was when 'reserved' then 'expired' else was end
        using errcode = 'NU003', hint = 'reserve again';
end
$body$ $make$, current_schema());
execute format($make$
create function cancel(reservation uuid, reason text default null) returns void
language plpgsql security definer set search_path = %1$I, pg_temp as $body$
declare
    id constant bytea := uuid_send(reservation);
    was text;
begin
    perform must_be_incarnation((select nonce from incarnation));
    update %1$I.reservation as r set state = 'cancelled', changed_by = 'sql:' || session_user,
        changed_at_us = cast(extract(epoch from clock_timestamp()) * 1000000 as bigint),
        reason = left(cancel.reason, 500)
    where r.reservation_id = id and r.state = 'reserved'
        and exists (select from counter c join partition p on p.partition_id = c.partition_id
            where c.counter_id = r.counter_id and p.state <> 'held');
    if found then
        return;
    end if;
    select r.state into was from %1$I.reservation r where r.reservation_id = id;
    if not found then
        select 'confirmed' into was from journal j where j.allocation_id = id
            and j.path = 'database' and j.number is not null and j.counter_id <> 0;
    end if;
    if not found then
        select l.act into was from life l where l.subject = id
            and l.act in ('cancelled', 'expired', 'lost', 'handed-back') limit 1;
    end if;
    if was = 'handed-back' then
        raise exception 'reservation %% was a block, and was handed back', reservation
            using errcode = 'NU003';
    end if;
    if was is null or was in ('confirmed', 'reserved') then
        raise exception 'reservation %% is not cancelled: %%', reservation,
            case was when 'confirmed' then 'it is confirmed' when 'reserved' then
            'the ledger is held until an operator acts' else 'there is none' end
            using errcode = 'NU003';
    end if;
end
$body$ $make$, current_schema());
end $do$;
revoke all on function confirm(uuid, text), cancel(uuid, text) from public;
