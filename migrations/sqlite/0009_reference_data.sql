-- Reference data (R4.6, R4.7): what series refer to by id in their counters and show by code in their
-- numbers. Nothing is erased. A code belongs to one id of its table for ever: a number that shows
-- it can always be traced to one counter, whatever was renamed since.
-- old binary: refuses to start (the schema is newer than it knows)

create table reference_row (
    table_name text not null,
    reference_id text not null,
    code text not null,
    name text not null,
    active integer not null constraint reference_row_active_known check (active in (0, 1)),
    constraint reference_row_pk primary key (table_name, reference_id),
    constraint reference_row_code unique (table_name, code),
    -- 0 stands for "none" in counter keys.
    constraint reference_row_not_none check (reference_id <> '0' and code <> '0')
) strict;

-- Every code that a row ever had.
create table reference_code (
    table_name text not null,
    code text not null,
    reference_id text not null,
    constraint reference_code_pk primary key (table_name, code),
    constraint reference_code_row foreign key (table_name, reference_id)
        references reference_row (table_name, reference_id)
) strict;

create table membership (
    table_name text not null,
    reference_id text not null,
    of_table_name text not null,
    of_reference_id text not null,
    active integer not null constraint membership_active_known check (active in (0, 1)),
    constraint membership_pk
        primary key (table_name, reference_id, of_table_name, of_reference_id),
    constraint membership_member foreign key (table_name, reference_id)
        references reference_row (table_name, reference_id),
    constraint membership_group foreign key (of_table_name, of_reference_id)
        references reference_row (table_name, reference_id)
) strict;

-- One row per import that changed anything: who, when, why and what. The highest id is the stamp by
-- which running nodes notice it.
create table reference_change (
    reference_change_id integer constraint reference_change_pk
        primary key,
    table_name text not null,
    change text not null,
    changed_by text not null,
    reason text not null,
    changed_at_us integer not null
) strict;
