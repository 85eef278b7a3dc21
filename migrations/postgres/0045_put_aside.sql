-- A record that the ledger refused was issued: retries, look-ups and later numbers find it by the
-- hashes of its number, its document and its caller's key. No column need take the texts. A row of
-- before has no hashes until a process of this version has started, and is looked at each time.
-- No index: the table is empty, or has a few rows.
-- old binary: refuses to start (the schema is newer than it knows). One that runs already goes on,
-- and finds nothing that is put aside.

alter table journal_rejected
    add column number_hash bigint,
    add column document_hash bigint,
    add column key_hash bigint;
