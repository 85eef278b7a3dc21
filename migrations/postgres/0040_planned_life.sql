-- Each transaction of a service asks where its server is (0020), and PostgreSQL (15) plans what a
-- function of the language SQL says anew for each statement: that was two thirds of what the
-- question costs. What a function of PL/pgSQL says is planned once by each session. It says what it
-- said.
-- old binary: refuses to start (the schema is newer than it knows). One that runs already goes on.

create or replace function ledger_life() returns text language plpgsql volatile as $$
begin
    return left(pg_walfile_name(pg_current_wal_insert_lsn()), 8) || ' '
        || (select oid from pg_database where datname = current_database());
end
$$;
