-- The codes of a row of reference data are found by the row. Without it, each of 6,000 rows was
-- compared with the codes of all: a read took 8 s.
-- old binary: refuses to start (the schema is newer than it knows). One that runs already goes on.

create index reference_code_of_row on reference_code (table_name, reference_id, code);
