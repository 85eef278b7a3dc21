-- no-transaction
-- The codes of a row of reference data are found by the row.
-- old binary: refuses to start (the schema is newer than it knows). One that runs already goes on.

create index concurrently if not exists reference_code_of_row
    on reference_code (table_name, reference_id, code);
