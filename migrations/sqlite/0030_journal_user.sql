-- "Who took what" (R5.3): a rare user's rows cannot be found by time without reading them all. By
-- the minute, so that the entries of a busy user are packed.
-- old binary: see 0025

create index journal_user_name on journal (user_name_id, (issued_at_us / 60000000));
