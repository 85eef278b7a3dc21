-- Roles beside the owner of the tables, who migrates: `numerator_writer` runs the service and its
-- commands, `numerator_archiver` runs `numerator archive` besides, `numerator_auditor` reads. None
-- can take the triggers away that keep the record as it is. To be run by the owner, in the schema of the ledger, after each migration; the roles must be
-- there:
--
--   create role numerator_writer login password '…';
--   create role numerator_archiver login password '…';
--   create role numerator_auditor login password '…';

do $$
declare
    ledger text := current_schema();
begin
    execute format('grant usage on schema %I to numerator_writer, numerator_auditor', ledger);
    execute format('grant select, insert, update, delete on all tables in schema %I '
        'to numerator_writer', ledger);
    execute format('grant usage on all sequences in schema %I to numerator_writer', ledger);
    execute format('grant select on all tables in schema %I to numerator_auditor', ledger);
end
$$;

-- Who archives removes rows by this alone, and only those that a segment stands for: a role of its
-- own, which the service does not have.
grant numerator_writer to numerator_archiver;
grant execute on function make_room(bigint, bigint, bigint) to numerator_archiver;

-- Rows of an earlier version are turned over: the journal alone may be updated, as far as its
-- trigger lets it.
revoke delete on journal, archive_file from numerator_writer;
-- That a node was swept stays as it was said.
revoke update, delete on swept_node from numerator_writer;
revoke update, delete on journal_batch, journal_kind, journal_name, checkpoint, event, revision
    from numerator_writer;
revoke delete on counter, series, series_version from numerator_writer;
-- A version stays as it was saved, but for with which others that was.
revoke update on series_version from numerator_writer;
grant update (saved_with) on series_version to numerator_writer;
-- What a token is for stays as it was created: it is rotated and revoked.
revoke update, delete on token from numerator_writer;
grant update (sha256, former_sha256, former_until_us, expires_at_us, revoked_by, revoked_at_us,
    last_used_at_us) on token to numerator_writer;
-- What was asked for stays as it was: it is answered, once.
revoke update, delete on change_request from numerator_writer;
grant update (step, stood_at, stood_on, dated_later, state, decided_by, decided_at_us,
    decision_reason, requested_identity, requested_person, decided_identity, decided_person)
    on change_request to numerator_writer;

-- By which hash a token is known is nobody's to read but the writer's.
revoke select on token from numerator_auditor;
grant select (token_id, name, former_until_us, roles, series, projects, count_max, expires_at_us,
    created_by, created_at_us, revoked_by, revoked_at_us, last_used_at_us, requests_per_minute,
    speaks_for_people) on token to numerator_auditor;
