-- Two people are two where their names differ as people read them: who asked and who approved are
-- kept folded (NFKC, lower case, without what is not seen), the identity and the person each, with
-- issuer and services aside, as the program writes them with the answer. What was approved before
-- is kept as it was written: those names differed by the condition of then.
-- old binary: refuses to start (the schema is newer than it knows). One that runs already approves
-- nothing: it does not write the names that the condition asks for

alter table change_request
    add column requested_identity text,
    add column requested_person text,
    add column decided_identity text,
    add column decided_person text;
update change_request set requested_identity = requested_by, requested_person = requested_by,
    decided_identity = decided_by, decided_person = decided_by
where state = 'approved';
alter table change_request
    drop constraint change_request_two_people,
    add constraint change_request_two_people check (state <> 'approved' or
        (requested_identity is not null and requested_person is not null
        and decided_identity is not null and decided_person is not null
        and requested_identity not in (decided_identity, decided_person)
        and requested_person not in (decided_identity, decided_person)));
