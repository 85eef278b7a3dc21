-- The indexes that others have taken the place of. No row is read.
-- old binary: see 0025

alter table journal drop constraint journal_value_once;
alter table journal add constraint journal_value_once primary key using index journal_value;
alter table journal drop column turn;
drop index journal_document, journal_key, journal_user;
