-- Creates the roles of a ledger and a database of its own. Once per server, as a superuser or a
-- managed server's administrator (docs/deploy.md), by psql:
--
--   OWNER_PASSWORD=… WRITER_PASSWORD=… psql --set ON_ERROR_STOP=1 --file deploy/postgres/create.sql \
--     postgres://postgres@db/postgres
--
-- ARCHIVER_PASSWORD, AUDITOR_PASSWORD and BACKUP_PASSWORD likewise. A role without a password
-- cannot log in where the server asks for one. It may be run again: passwords are set from the
-- environment, and those missing there stay. `numerator migrate --roles` comes next, as the owner.

\set QUIET on
\set ON_ERROR_STOP on
\set owner `printf %s "$OWNER_PASSWORD"`
\set writer `printf %s "$WRITER_PASSWORD"`
\set archiver `printf %s "$ARCHIVER_PASSWORD"`
\set auditor `printf %s "$AUDITOR_PASSWORD"`
\set backup `printf %s "$BACKUP_PASSWORD"`

-- The owner of the database migrates and restores; the others are explained in roles.sql.
select format('create role %I login', name)
from unnest(array['numerator_owner', 'numerator_writer', 'numerator_archiver',
    'numerator_auditor', 'numerator_backup']) as name
where not exists (select 1 from pg_roles where rolname = name) \gexec

-- Granted to the users of callers whose tables are in the ledger's database; nobody logs in as it.
select 'create role numerator_confirmer nologin'
where not exists (select 1 from pg_roles where rolname = 'numerator_confirmer') \gexec

select format('alter role %I password %L', name, password)
from (values ('numerator_owner', :'owner'), ('numerator_writer', :'writer'),
    ('numerator_archiver', :'archiver'), ('numerator_auditor', :'auditor'),
    ('numerator_backup', :'backup')) as given (name, password)
where password <> '' \gexec

-- To see whether commits wait for standbys, and the activity of sessions that hold locks.
grant pg_monitor to numerator_owner, numerator_writer;
-- To end such a session, unless it is a superuser's.
grant pg_signal_backend to numerator_owner;

-- A non-superuser gives a database only to a role that it belongs to: for this one statement.
select not rolsuper and not exists (select 1 from pg_database where datname = 'numerator') as joins
from pg_roles where rolname = current_user \gset
\if :joins
grant numerator_owner to current_user;
\endif
select 'create database numerator owner numerator_owner'
where not exists (select 1 from pg_database where datname = 'numerator') \gexec
\if :joins
revoke numerator_owner from current_user;
\endif

-- The holder of an advisory lock keeps imports, change requests and migrations waiting. These
-- rights are a database's own, and a superuser's to grant: a restored one needs this again.
\connect numerator
select format('revoke execute on function %s from public; grant execute on function %1$s to '
    'numerator_owner, numerator_writer, numerator_archiver', oid::regprocedure)
from pg_proc
where pronamespace = 'pg_catalog'::regnamespace and proname ~ '^pg_(try_)?advisory_'
    and (select rolsuper from pg_roles where rolname = current_user) \gexec
