-- Whoever has brought series of their own, if only in a file with a mistake, is given no others: the
-- built-in ones come to a ledger whose first command is another one.
-- old binary: refuses to start (the schema is newer than it knows). One that runs already gives the
-- built-in series to a ledger without any.

-- When somebody first applied a series file, whatever became of it; null while nobody has.
alter table deployment add column own_series_at_us bigint;
