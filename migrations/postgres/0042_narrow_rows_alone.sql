-- A row of the journal that points to a batch says in no column of an earlier version what its
-- batch, its kind and its names say: the view `journal_row` prefers those columns, and seals cover
-- the others. Rows that are there are not read; `numerator audit verify` looks at each.
-- old binary: ok (a wide row has no batch, and turning one over empties these columns)

alter table journal add constraint journal_is_narrow check (batch_id is null or (
    series_id is null and version is null and type_code is null and project is null
    and document_date is null and user_id is null and ip_address is null
    and payload_digest is null and partition_id is null and epoch is null and node_id is null
    and journaled_at_us is null)) not valid;
