-- The rows that are not turned over yet: where the next ones are, and whether there are any.
-- old binary: see 0025

-- SQLite has turned all of them over at once (0025): there is nothing to find.
