-- Roles of a ledger on PostgreSQL, besides the owner of its tables, who migrates and restores:
--
--   numerator_writer    runs the service and its commands
--   numerator_archiver  also runs `numerator archive`
--   numerator_auditor   reads all except the hashes of secrets
--   numerator_backup    reads all that pg_dump needs
--   numerator_confirmer confirms and cancels reservations in transactions of its own; no table
--
-- None can remove the triggers that protect the record. create.sql creates the roles, their owner
-- and a database, once, as a superuser.
--
-- Run this after each migration, as the owner of the tables (or a superuser), in their schema:
--
--   psql --set ON_ERROR_STOP=1 --file deploy/postgres/roles.sql "$OWNER_URL"
--
-- or have `numerator migrate --roles` do it. It is one statement: all of it is done, or nothing,
-- and the error says why. It may run while services run, and again. A missing role gets nothing,
-- and is named. Other rights of these roles on the ledger's tables are revoked. If a superuser runs
-- it, only the owner and the writers keep the advisory locks of this database: the ledger has a
-- database of its own.

do $roles$
declare
    ledger constant text := current_schema();
    tables_of_ledger constant regclass := to_regclass(format('%I.journal', ledger));
    may_all constant boolean := (select rolsuper from pg_roles where rolname = current_user);
    owner text;
    other text;
    missing text;
    writers text;
    archiver text;
    auditor text;
    backup text;
    readers text;
    everybody text;
    it record;
begin
    if tables_of_ledger is null then
        raise exception 'no ledger in schema %: run `numerator migrate` as its owner first', ledger;
    end if;
    -- No migration runs meanwhile.
    perform pg_advisory_xact_lock(hashtextextended('numerator migrate ' || ledger, 0));
    select string_agg(name, ', ') into missing
    from unnest(array['numerator_writer', 'numerator_archiver', 'numerator_auditor',
        'numerator_backup']) as name
    where not exists (select 1 from pg_roles where rolname = name);
    if missing like '%numerator_writer%' then
        raise exception 'role numerator_writer is missing: create.sql makes it, as a superuser';
    end if;
    if missing is not null then
        raise notice 'not there, and given nothing: %', missing;
    end if;
    select string_agg(quote_ident(rolname), ', ')
            filter (where rolname in ('numerator_writer', 'numerator_archiver')),
        string_agg(quote_ident(rolname), ', ') filter (where rolname = 'numerator_archiver'),
        string_agg(quote_ident(rolname), ', ') filter (where rolname = 'numerator_auditor'),
        string_agg(quote_ident(rolname), ', ') filter (where rolname = 'numerator_backup'),
        string_agg(quote_ident(rolname), ', ') filter (where rolname <> 'numerator_auditor'),
        string_agg(quote_ident(rolname), ', ')
    into writers, archiver, auditor, backup, readers, everybody
    from pg_roles where rolname in
        ('numerator_writer', 'numerator_archiver', 'numerator_auditor', 'numerator_backup');
    select pg_get_userbyid(relowner) into owner from pg_class where oid = tables_of_ledger;
    if not pg_has_role(owner, 'usage') then
        raise exception 'the ledger belongs to %: run this as that role', owner;
    end if;

    execute format('grant usage on schema %I to %s', ledger, everybody);
    -- Everything may be read, and nothing else may be done, unless listed below.
    for it in select relname as name, relkind as kind from pg_class
        where relnamespace = (select oid from pg_namespace where nspname = ledger)
            and relkind in ('r', 'p', 'v', 'S') and pg_has_role(relowner, 'usage')
    loop
        if it.kind = 'S' then
            execute format('revoke all on sequence %I.%I from public, %s', ledger, it.name,
                everybody);
            execute format('grant usage on sequence %I.%I to %s', ledger, it.name, writers);
            if backup is not null then
                execute format('grant select on sequence %I.%I to %s', ledger, it.name, backup);
            end if;
            continue;
        end if;
        execute format('revoke all on table %I.%I from %s', ledger, it.name, everybody);
        execute format('grant select on table %I.%I to %s', ledger, it.name, readers);
        if auditor is not null and it.name <> 'token' then
            execute format('grant select on table %I.%I to %s', ledger, it.name, auditor);
        end if;
    end loop;
    -- A hash of 256 random bits reveals nothing, and an audit needs none.
    if auditor is not null and to_regclass(format('%I.token', ledger)) is not null then
        execute (select format('grant select (%s) on table %I.token to %s',
                string_agg(quote_ident(attname), ', '), ledger, auditor)
            from pg_attribute where attrelid = to_regclass(format('%I.token', ledger))
                and attnum > 0 and not attisdropped and attname not like '%sha256');
    end if;

    -- For each table, the writer's rights besides reading, and why they cannot be fewer. A test
    -- compares them with the statements of the program, and finds a table that is missing here.
    for it in select * from (values
        ('archive_file', '', 'files are the archiver''s'),
        ('archived_number', '', 'files are the archiver''s'),
        ('assignment', 'insert', 'a number of a range has one document'),
        ('block_number', 'insert', 'texts of live blocks: a trigger removes them with their block'),
        ('change_request', 'insert, update (state, decided_by, decided_at_us, decision_reason, '
            'step, stood_at, stood_on, dated_later, requested_identity, requested_person, '
            'decided_identity, decided_person)', 'asked for and answered once: a trigger'),
        ('checkpoint', 'insert', 'signed, each binds the one before'),
        ('chronology', 'insert, update (last_date), delete',
            'the last date of a series that keeps its order; goes where it does so no more'),
        ('chronology_search', 'insert, update (last_date, key, value), delete',
            'how far the search for a last date has come'),
        ('closed_epoch', 'insert', 'how an epoch ended is said once'),
        ('collision', 'insert, update (acknowledged_at_us, acknowledged_by, acknowledged_reason)',
            'a duplicate stays; that it is explained is added'),
        ('counter', 'insert, update (epoch, start_value, taken, ceiling, step, journaled, '
            'returned, reissued, left_behind, seeded_by, seeded_at_us)',
            'numbers are taken; what it counts, and from where, stays'),
        ('deployment', 'insert, update (idempotency_window_ms, own_series_at_us)',
            'set up once; its row is a lock'),
        ('event', 'insert', 'what happened stays'),
        ('gap', 'insert, update (first_value, last_value, reason, noted_at_us), delete',
            'a number that turns up after all leaves the register; returned values are spent where '
            'a counter goes on above them; verify misses what is in neither'),
        ('incarnation', 'insert, update', 'what all processes agree on'),
        ('incarnation_line', 'insert, update (replaced_at_us)', 'incarnations stay'),
        ('inquest', 'insert, delete', 'one at a time, of a ledger that went back'),
        ('inquest_report', 'insert, update (is_complete, identities, epochs, seen), delete',
            'a process reports anew; they go with their inquest'),
        ('interface_check', 'insert, update (accepted_at_us, accepted_by, accepted_key, repeats, '
            'repeated_at_us)', 'a serial is accepted once; repetitions are counted'),
        ('journal', 'insert, update (retry_count)',
            'a revision locks the row of its number, which takes a right to a column; a trigger '
            'keeps every row'),
        ('journal_batch', 'insert', 'sealed'),
        ('journal_kind', 'insert', 'rows point to it'),
        ('journal_name', 'insert', 'rows point to it'),
        ('journal_rejected', 'insert, update (acknowledged_at_us, acknowledged_by, '
            'acknowledged_reason), delete',
            'a record that is journaled after all leaves it; verify misses what is in neither'),
        ('life', 'insert', 'what became of a number stays'),
        ('membership', 'insert, update (active)', 'reference data: stays, and is switched'),
        ('node', 'insert, update, delete', 'heartbeats; swept long after the process ended'),
        ('participant', 'insert, update (state, changed_at_us), delete',
            'of epochs; swept long after they ended'),
        ('partition', 'insert, update', 'owner, epoch, state: each step a compare-and-set'),
        ('reference_change', 'insert', 'who changed reference data stays'),
        ('reference_code', 'insert, update (reference_id)',
            'a code stays its row''s: the conflict is read by an update'),
        ('reference_row', 'insert, update (code, name, active)', 'reference data is renamed'),
        ('reservation', 'insert, update (state, changed_at_us, changed_by, reason), delete',
            'confirmed or cancelled once; what ends goes to `life` or the journal'),
        ('revision', 'insert', 'a label is given once'),
        ('serial_event', 'insert', 'what happened stays'),
        ('series', 'insert, update (code, partition, active_version, used_since, removed_at_us)',
            'which version is in force; one that is removed keeps its row'),
        ('series_version', 'insert, update (saved_with)',
            'versions stay; which were saved together is written once they are'),
        ('snowflake_lease', 'update (holder, until_ms)', 'its rows are made by a migration'),
        ('swept_node', 'insert', 'that a node was swept stays'),
        ('system_step', 'insert, update (unified_serial, state, attempt, begun_at_us, begun_by, '
            'begun_key, ended_at_us, ended_by, result, reason)', 'attempts of one step'),
        ('token', 'insert, update (sha256, former_sha256, former_until_us, expires_at_us, '
            'revoked_by, revoked_at_us, last_used_at_us)',
            'rotated, revoked, used; a name keeps its rights for ever, and verify misses the event '
            'of one that is written, changed or revoked by hand'),
        ('token_stamp', 'update (stamp)', 'its row is the lock of those who change tokens'),
        ('undated_request', 'insert, update (asked_at_us, turn_us), delete',
            'goes after the day on which series take turns'),
        ('unsettled', 'insert, update (after_value, found), delete',
            'how far the search for lost values has come'),
        ('_sqlx_migrations', '', 'the owner migrates')
    ) as granted (name, rights, why)
    loop
        select pg_get_userbyid(relowner) into other from pg_class
        where oid = to_regclass(format('%I.%I', ledger, it.name))
            and not pg_has_role(relowner, 'usage');
        if found then
            raise exception 'table % belongs to %: run this as the owner of all tables of the '
                'ledger, or give them to one (docs/deploy.md)', it.name, other;
        end if;
        -- A ledger that is older than this file lacks some.
        continue when it.rights = ''
            or to_regclass(format('%I.%I', ledger, it.name)) is null;
        execute format('grant %s on table %I.%I to %s', it.rights, ledger, it.name, writers);
    end loop;

    -- An archiver removes rows of the journal only by this function, and only those that a segment
    -- replaces: a role of its own, which the service does not have.
    if archiver is not null then
        execute format('grant insert, update (ended_at_us, deleted_at_us, deleted_by, '
            'deleted_reason) on table %I.archive_file to %s', ledger, archiver);
        execute format('grant insert, delete on table %I.archived_number to %s', ledger, archiver);
        execute format('grant execute on function %I.make_room(bigint, bigint, bigint) to %s',
            ledger, archiver);
    end if;

    -- Callers whose tables are in this database: the id of a reservation is the right to it.
    if exists (select from pg_roles where rolname = 'numerator_confirmer')
        and to_regprocedure(format('%I.confirm(uuid, text)', ledger)) is not null then
        execute format('grant usage on schema %I to numerator_confirmer', ledger);
        execute format('grant execute on function %1$I.confirm(uuid, text), '
            '%1$I.cancel(uuid, text) to numerator_confirmer', ledger);
    end if;

    if pg_has_role((select nspowner from pg_namespace where nspname = ledger), 'usage') then
        execute format('revoke create on schema %I from public', ledger);
    end if;
    -- The holder of a lock keeps imports, change requests and migrations waiting.
    if may_all then
        for it in select oid::regprocedure as lock from pg_proc
            where pronamespace = 'pg_catalog'::regnamespace and proname ~ '^pg_(try_)?advisory_'
        loop
            execute format('revoke execute on function %s from public', it.lock);
            execute format('grant execute on function %s to %I, %s', it.lock, owner, writers);
        end loop;
    end if;
end
$roles$;
