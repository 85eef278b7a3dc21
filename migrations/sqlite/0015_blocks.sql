-- Blocks: reservations of several numbers of one counter, without an end by time, that are handed
-- back as a whole. The row of a block is never updated: it is removed as the block ends.
-- old binary: refuses to start (the schema is newer than it knows). One that runs already would
-- return every value of a cancelled block: no block is reserved while one lives, and the trigger
-- refuses its statement.

-- The texts of the numbers of live blocks. The first one's is in `reservation`.
create table if not exists block_number (
    reservation_id blob not null,
    value integer not null,
    number text not null,
    scope text not null,
    number_hash integer not null,
    constraint block_number_pk primary key (reservation_id, value),
    -- Also what a text is found by, hashed.
    constraint block_number_once unique (number_hash, number, scope)
) strict;

create trigger if not exists reservation_block_stays before update on reservation
when old.first_value < old.last_value
begin
    select raise(abort, 'a block is handed back, or cancelled over HTTP');
end;

create trigger if not exists reservation_block_ends after delete on reservation
when old.first_value < old.last_value
begin
    delete from block_number where reservation_id = old.reservation_id;
end;
