-- A narrower row of the journal. What a commit shares stands once in a batch that its rows point
-- to; users and addresses, and what of a series repeats, are integers that point to small tables;
-- what can be derived is not stored: the last value of a single number, a step of 1, the path of
-- Redis, the number's partially rendered text where its outline tells it. What makes a number unique
-- stays in the row as it was (R1.10): whatever else is lost or wrong, no number comes twice.
-- All rows are turned over here, in one transaction: a million takes some seconds. Programs read
-- `journal_row`.
-- old binary: refuses to start (the schema is newer than it knows)

-- Users and addresses of the journal. -- Rows are never changed nor removed. Two that are written at once
-- may say the same: who waited for the other would wait for whatever else that one does (F31).
create table journal_name (
    name_id integer constraint journal_name_pk primary key,
    name text not null
) strict;

create index journal_name_name on journal_name (name);

-- What rows of one type and project have in common under one version of a series; likewise.
create table journal_kind (
    kind_id integer constraint journal_kind_pk primary key,
    series_id integer not null,
    version integer not null,
    type_code text not null,
    project text
) strict;
create index journal_kind_of_series on journal_kind (series_id, version, type_code, project);

-- What the rows of one commit have in common, for each partition and epoch that took their values.
create table journal_batch (
    batch_id integer constraint journal_batch_pk primary key,
    epoch integer not null,
    journaled_at_us integer not null,
    partition_id integer not null,
    node_id blob not null
) strict;

insert into journal_name (name)
    select user_id from journal union select ip_address from journal where ip_address is not null;
insert into journal_kind (series_id, version, type_code, project)
    select distinct series_id, version, type_code, project from journal;
insert into journal_batch (epoch, journaled_at_us, partition_id, node_id)
    select distinct epoch, journaled_at_us, partition_id, node_id from journal order by 2;

create table narrow (
    counter_id integer not null,
    first_value integer not null constraint journal_first_not_negative check (first_value >= 0),
    last_value integer constraint journal_range_in_order check (first_value <= last_value),
    step integer constraint journal_step_at_least_1 check (step >= 1),
    allocation_id blob not null,
    number text,
    scope text,
    mask text,
    outline text,
    rest text,
    document_id text,
    document_day text not null,
    context text,
    idempotency_key text,
    digest blob,
    issued_at_us integer not null,
    retry_count integer,
    path text constraint journal_path_known check (path in ('database', 'imported')),
    batch_id integer not null,
    kind_id integer not null,
    user_name_id integer not null,
    -- 0 stands for an address that has no id yet: the row waits until it has one.
    address_name_id integer constraint journal_address_named check (address_name_id <> 0),
    -- A second equal number within its scope (R1.10). The number leads: it serves look-ups too.
    constraint journal_number_once unique (number, scope),
    constraint journal_number_has_scope check ((number is null) = (scope is null)
        and (number is null) = (mask is null and outline is null))
) strict;
insert into narrow (counter_id, first_value, last_value, step, allocation_id, number, scope, mask,
    rest, document_id, document_day, context, idempotency_key, digest, issued_at_us, retry_count,
    path, batch_id, kind_id, user_name_id, address_name_id)
select j.counter_id, j.first_value, nullif(j.last_value, j.first_value), nullif(j.step, 1),
    j.allocation_id, j.number, j.scope, j.mask, j.rest, j.document_id, j.document_date, j.context,
    j.idempotency_key,
    case when length(j.payload_digest) = 32 then unhex(j.payload_digest) end,
    j.issued_at_us, nullif(j.retry_count, 0), nullif(j.path, 'redis'),
    b.batch_id, k.kind_id, u.name_id, a.name_id
from journal j
join journal_batch b on b.journaled_at_us = j.journaled_at_us and b.node_id = j.node_id
    and b.partition_id = j.partition_id and b.epoch = j.epoch
join journal_kind k on k.series_id = j.series_id and k.version = j.version
    and k.type_code = j.type_code and k.project is j.project
join journal_name u on u.name = j.user_id
left join journal_name a on a.name = j.ip_address
order by j.rowid;
drop table journal;
alter table narrow rename to journal;

-- A database transaction looks for its own earlier attempt (F10); rows of Redis pay nothing.
create index journal_allocation on journal (allocation_id) where path = 'database';
-- Search by time.
create index journal_issued on journal (issued_at_us);

-- Each row whole. The joins cost a look-up each, and nothing where their columns are not asked for.
create view journal_row as
select j.counter_id, j.first_value,
    coalesce(j.last_value, j.first_value) as last_value,
    coalesce(j.step, 1) as step,
    j.allocation_id, j.number, j.scope, j.mask, j.outline, j.rest,
    k.series_id, k.version, k.type_code, k.project,
    j.document_id,
    j.document_day as document_date,
    j.context,
    u.name as user_id,
    a.name as ip_address,
    j.idempotency_key,
    lower(coalesce(hex(j.digest), '')) as payload_digest,
    j.issued_at_us,
    coalesce(j.retry_count, 0) as retry_count,
    coalesce(j.path, 'redis') as path,
    b.partition_id, b.epoch, b.node_id, b.journaled_at_us,
    j.batch_id, j.user_name_id,
    j.rowid as row_id
from journal j
left join journal_batch b on b.batch_id = j.batch_id
left join journal_kind k on k.kind_id = j.kind_id
left join journal_name u on u.name_id = j.user_name_id
left join journal_name a on a.name_id = j.address_name_id;
