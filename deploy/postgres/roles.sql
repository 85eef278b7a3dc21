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
