-- The ledger itself may go back: a standby that lags is promoted, a dump is put in its place. What its
-- users agreed on names the life of the server that it was agreed in; each transaction compares (F25).
-- old binary: refuses to start (the schema is newer than it knows). One that runs already does not compare.

create table incarnation (
    only_row boolean primary key default true constraint incarnation_is_one check (only_row),
    -- Rises whenever partitions are held.
    number bigint not null constraint incarnation_number_is_positive check (number > 0),
    -- Drawn with each number: of two branches of one ledger each draws its own.
    nonce bytea not null constraint incarnation_nonce_is_an_id check (length(nonce) = 16),
    -- The timeline and the database in which it was written.
    life text not null,
    -- The transaction that wrote this version of the row: a dump put back writes it anew.
    born bigint not null
);

-- Where this server is: changes from the first moment of a promotion, and with a copy of the database.
create function ledger_life() returns text language sql volatile as $$
    select left(pg_walfile_name(pg_current_wal_insert_lsn()), 8) || ' '
        || (select oid from pg_database where datname = current_database())
$$;

-- Fails unless the ledger lives the life that was agreed on under this nonce.
create function must_be_incarnation(wanted bytea) returns void language plpgsql volatile as $$
begin
    if pg_is_in_recovery() then
        raise exception 'the server is a standby' using errcode = '25006';
    end if;
    perform 1 from incarnation i where i.nonce = wanted and i.life = ledger_life()
        and i.born = i.xmin::text::bigint;
    if not found then
        raise exception 'it is not the incarnation that was agreed on' using errcode = 'NU001';
    end if;
end
$$;
