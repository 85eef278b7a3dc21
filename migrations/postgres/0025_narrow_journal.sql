-- A narrower row of the journal. What a commit shares stands once in a batch that its rows point
-- to; users and addresses, and what of a series repeats, are integers that point to small tables;
-- what can be derived is not stored: the last value of a single number, a step of 1, the path of
-- Redis, the number's partially rendered text where its outline tells it. What makes a number unique
-- stays in the row as it was (R1.10): whatever else is lost or wrong, no number comes twice.
-- Rows of before are turned over by the service, a bounded number at a time; until then they are
-- read as they are. Programs read `journal_row`, which shows both alike.
-- old binary: refuses to start (the schema is newer than it knows), and must not run any more: it
-- cannot read the rows that this version writes

-- Users and addresses of the journal. -- Rows are never changed nor removed. Two that are written at once
-- may say the same: who waited for the other would wait for whatever else that one does (F31).
create table journal_name (
    name_id integer generated always as identity constraint journal_name_pk primary key,
    name text collate "C" not null
);

create index journal_name_name on journal_name (name);

-- What rows of one type and project have in common under one version of a series; likewise.
create table journal_kind (
    kind_id integer generated always as identity constraint journal_kind_pk primary key,
    series_id bigint not null,
    version integer not null,
    type_code text not null,
    project text
);
create index journal_kind_of_series on journal_kind (series_id, version, type_code, project);

-- What the rows of one commit have in common, for each partition and epoch that took their values.
create table journal_batch (
    batch_id bigint generated always as identity constraint journal_batch_pk primary key,
    epoch bigint not null,
    journaled_at_us bigint not null,
    partition_id integer not null,
    node_id bytea not null
);

-- No row is read: what is dropped was the only reason for a row to be refused, and what is added
-- holds for each.
alter table journal
    drop constraint journal_number_has_scope,
    alter column last_value drop not null,
    alter column step drop not null,
    alter column series_id drop not null,
    alter column version drop not null,
    alter column type_code drop not null,
    alter column document_date drop not null,
    alter column user_id drop not null,
    alter column payload_digest drop not null,
    alter column retry_count drop not null,
    alter column path drop not null,
    alter column partition_id drop not null,
    alter column epoch drop not null,
    alter column node_id drop not null,
    alter column journaled_at_us drop not null,
    -- In this order the row has the least padding.
    add column batch_id bigint,
    add column kind_id integer,
    add column user_name_id integer,
    add column address_name_id integer,
    add column document_day date,
    add column digest bytea,
    add column outline text collate "C",
    add constraint journal_number_has_scope check ((number is null) = (scope is null)
        and (number is null) = (mask is null and outline is null)) not valid,
    -- A row of before, or one that points to all that it shares.
    add constraint journal_is_whole check (node_id is not null
        or batch_id is not null and kind_id is not null and user_name_id is not null
        and document_day is not null) not valid;

-- Each row whole, whenever it was written. The joins cost a look-up each, and nothing where their
-- columns are not asked for.
create view journal_row as
select j.counter_id, j.first_value,
    coalesce(j.last_value, j.first_value) as last_value,
    coalesce(j.step, 1) as step,
    j.allocation_id, j.number, j.scope, j.mask, j.outline, j.rest,
    coalesce(j.series_id, k.series_id) as series_id,
    coalesce(j.version, k.version) as version,
    coalesce(j.type_code, k.type_code) as type_code,
    coalesce(j.project, k.project) as project,
    j.document_id,
    coalesce(j.document_date, to_char(j.document_day, 'YYYY-MM-DD')) as document_date,
    j.context,
    coalesce(j.user_id, u.name) as user_id,
    coalesce(j.ip_address, a.name) collate "C" as ip_address,
    j.idempotency_key,
    coalesce(j.payload_digest, encode(j.digest, 'hex'), '') as payload_digest,
    j.issued_at_us,
    coalesce(j.retry_count, 0) as retry_count,
    coalesce(j.path, 'redis') as path,
    coalesce(j.partition_id, b.partition_id) as partition_id,
    coalesce(j.epoch, b.epoch) as epoch,
    coalesce(j.node_id, b.node_id) as node_id,
    coalesce(j.journaled_at_us, b.journaled_at_us) as journaled_at_us,
    j.batch_id, j.user_name_id,
    j.xmin as written_by
from journal j
left join journal_batch b on b.batch_id = j.batch_id
left join journal_kind k on k.kind_id = j.kind_id
left join journal_name u on u.name_id = j.user_name_id
left join journal_name a on a.name_id = j.address_name_id;
