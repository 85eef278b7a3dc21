-- Two people are two where their names differ as people read them: who asked and who approved are
-- kept folded (NFKC, lower case, without what is not seen), the identity and the person each, with
-- issuer and services aside, as the program writes them with the answer. What was approved before
-- is kept as it was written: those names differed by the condition of then.
-- SQLite cannot alter a condition. It may be edited in the schema where the rows there are keep it,
-- as these do.
-- old binary: refuses to start (the schema is newer than it knows). One that runs already approves
-- nothing: it does not write the names that the condition asks for

alter table change_request add column requested_identity text;
alter table change_request add column requested_person text;
alter table change_request add column decided_identity text;
alter table change_request add column decided_person text;
update change_request set requested_identity = requested_by, requested_person = requested_by,
    decided_identity = decided_by, decided_person = decided_by
where state = 'approved';

pragma writable_schema = on;
update sqlite_schema
set sql = replace(sql, 'check (state <> ''approved'' or decided_by <> requested_by)',
    'check (state <> ''approved'' or
        (requested_identity is not null and requested_person is not null
        and decided_identity is not null and decided_person is not null
        and requested_identity not in (decided_identity, decided_person)
        and requested_person not in (decided_identity, decided_person)))')
where type = 'table' and name = 'change_request';
pragma writable_schema = reset;
