-- Blocks: reservations of several numbers of one counter, without an end by time, that are handed
-- back as a whole. The row of a block is never updated: it is removed as the block ends.
-- old binary: refuses to start (the schema is newer than it knows). One that runs already would
-- return every value of a cancelled block: no block is reserved while one lives, and the trigger
-- refuses its statement.

-- The texts of the numbers of live blocks. The first one's is in `reservation`.
create table if not exists block_number (
    reservation_id bytea not null,
    value bigint not null,
    number text collate "C" not null,
    scope text collate "C" not null,
    number_hash bigint not null,
    constraint block_number_pk primary key (reservation_id, value),
    -- Also what a text is found by, hashed.
    constraint block_number_once unique (number_hash, number, scope)
);

-- Also for the functions `confirm` and `cancel`: what was used of a block is not known to them.
create or replace function block_is_handed_back() returns trigger language plpgsql
set search_path = pg_catalog, pg_temp as $$
begin
    raise exception 'reservation % is a block', encode(old.reservation_id, 'hex')::uuid
        using errcode = 'NU003', hint = 'hand it back, or cancel it over HTTP';
end
$$;
revoke all on function block_is_handed_back() from public;
drop trigger if exists reservation_block_stays on reservation;
create trigger reservation_block_stays before update on reservation
    for each row when (old.first_value < old.last_value)
    execute function block_is_handed_back();

-- With the rights of the owner of the tables: who removes a block needs none to its texts. Of this
-- schema alone, and for no trigger but that of the owner: another one would run by the owner's
-- rights.
do $do$ begin
execute format($make$
create or replace function block_leaves_no_text() returns trigger language plpgsql
security definer set search_path = pg_catalog, pg_temp as $body$
begin
    delete from %1$I.block_number where reservation_id = old.reservation_id;
    return null;
end
$body$ $make$, current_schema());
end $do$;
revoke all on function block_leaves_no_text() from public;
drop trigger if exists reservation_block_ends on reservation;
create trigger reservation_block_ends after delete on reservation
    for each row when (old.first_value < old.last_value)
    execute function block_leaves_no_text();
