-- A document on one number of a range: an act `assigned` of `life`, once for each value, and the
-- way from the document to the number. Both rows are written in one transaction.
-- old binary: refuses to start (the schema is newer than it knows). One that runs already would
-- give such a document a second number, and archive such a range: nothing is assigned while one
-- lives.

alter table life
    drop constraint life_act_known, add constraint life_act_known check (act in ('cancelled',
        'expired', 'lost', 'handed-back', 'voided', 'replaced', 'corrected', 'registered',
        'assigned')) not valid,
    drop constraint life_once_is_the_act, add constraint life_once_is_the_act
        check (case when act in ('voided', 'replaced', 'assigned')
        then once is not null and once = act else once is null end) not valid,
    drop constraint if exists life_names_its_document,
    add constraint life_names_its_document check (act <> 'assigned' or document_id is not null)
        not valid;

create table if not exists assignment (
    -- The value of the number, of the first serial.
    counter_id bigint not null,
    value bigint not null,
    -- The first value of the range's row of the journal.
    row_first bigint not null,
    series_id bigint not null,
    project text collate "C",
    -- Who took the range: the number is visible to whom the range is.
    user_id text collate "C" not null,
    number text collate "C" not null,
    document_id text collate "C" not null,
    -- What it is found by, hashed.
    document_hash bigint not null,
    assigned_at_us bigint not null,
    constraint assignment_pk primary key (counter_id, value),
    -- Also the way from a document to its numbers.
    constraint assignment_document unique (document_hash, counter_id, value),
    constraint assignment_within_its_range check (row_first <= value)
);

create or replace trigger assignment_stays before update or delete on assignment
    for each row execute function must_stay_as_it_is();
create or replace trigger assignment_is_not_emptied before truncate on assignment
    for each statement execute function must_stay_as_it_is();
