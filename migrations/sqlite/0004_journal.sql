-- The record of issued numbers. A row is written once and never changed; it is removed only where
-- an archived segment stands for its values (0005). What a commit shares stands once in a batch
-- that its rows point to. Users, addresses and what repeats within a series are integers that point
-- to small tables. What can be derived is null: the last value of a single number, a step of 1, the
-- path of Redis, the mask where the outline tells it. What makes a number unique stands in the row
-- itself: whatever else is lost or wrong, no number comes twice. Readers use the view
-- `journal_row`.
-- old binary: ok (there is none)

-- Users and addresses of the journal. Written with the first row that names one.
create table journal_name (
    name_id integer constraint journal_name_pk primary key,
    name text not null
) strict;
create index journal_name_name on journal_name (name);

-- What rows of one type and project have in common under one version of a series. Written and read
-- like names.
create table journal_kind (
    kind_id integer constraint journal_kind_pk primary key,
    series_id integer not null,
    version integer not null,
    type_code text not null,
    project text
) strict;
create index journal_kind_of_series on journal_kind (series_id, version, type_code, project);

-- What the rows of one commit have in common, for each partition and epoch that took their values,
-- and their seal.
create table journal_batch (
    batch_id integer constraint journal_batch_pk primary key,
    epoch integer not null,
    journaled_at_us integer not null,
    partition_id integer not null,
    -- Rows that it was written with.
    line_count integer not null,
    node_id blob not null,
    -- SHA-256 over what the rows say.
    seal blob not null,
    -- HMAC-SHA-256 of the seal, by a key that the database never sees. Null: the process that wrote
    -- it had no key.
    proof blob
) strict;

-- One row for each issued range of each serial. A number with several serials has one row for each:
-- the first carries the number and, in `rest`, the others. A revision has a row of the counter 0,
-- which does not exist; a segment has a row without a number whose context names its file (0005).
-- There are no foreign keys: a row of a number that was handed out must always fit (F13), and each
-- key would cost a look-up for each row. The idempotency key is not unique: one key may
-- legitimately have two numbers after a close at the ceiling (F13).
create table journal (
    counter_id integer not null,
    first_value integer not null constraint journal_first_not_negative check (first_value >= 0),
    batch_id integer not null,
    issued_at_us integer not null,
    -- Null: the first value.
    last_value integer constraint journal_range_in_order check (first_value <= last_value),
    -- Null: 1.
    step integer constraint journal_step_at_least_1 check (step >= 1),
    kind_id integer not null,
    user_name_id integer not null,
    -- 0 stands for an address that has no id yet: the row waits until it has one.
    address_name_id integer constraint journal_address_named check (address_name_id <> 0),
    document_day text not null,
    -- Null: 0.
    retry_count integer,
    allocation_id blob not null,
    number text,
    scope text,
    -- The partially rendered number, and the short form of it: one of them.
    mask text,
    outline text,
    rest text,
    context text,
    document_id text,
    idempotency_key text,
    -- The hash of the payload.
    digest blob,
    -- Null: redis.
    path text constraint journal_path_known check (path in ('database', 'imported')),
    -- No number twice within its scope. The number leads: the key serves look-ups too.
    constraint journal_number_once unique (number, scope),
    constraint journal_number_has_scope check ((number is null) = (scope is null)
        and (number is null) = (mask is null and outline is null))
) strict;
-- No value of a counter twice; the probe for an overlapping neighbour, and for what is missing.
create unique index journal_value_once on journal (counter_id, first_value);
-- The numbers of a document, the replay of a document's number, and the links of a transaction
-- serial, which begin alike.
create index journal_document_id on journal (document_id) where document_id is not null;
-- The replay of a caller's key that Redis does not know (F1).
create index journal_idempotency_key on journal (idempotency_key)
    where idempotency_key is not null;
-- Who took what: the rows of a rare user cannot be found by time without reading all. By the
-- minute, so that the entries of a busy user are packed.
create index journal_user_name on journal (user_name_id, (issued_at_us / 60000000));
-- A database transaction looks for its own earlier attempt (F10); rows of Redis pay nothing.
create index journal_allocation on journal (allocation_id) where path = 'database';
-- Search by time.
create index journal_issued on journal (issued_at_us);

-- Each row whole. A join costs a look-up, and nothing where its columns are not asked for.
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
    case when j.number is null and j.context is not null then 'archived'
        else coalesce(j.path, 'redis') end as path,
    b.partition_id, b.epoch, b.node_id, b.journaled_at_us,
    j.batch_id, j.user_name_id,
    j.rowid as row_id
from journal j
left join journal_batch b on b.batch_id = j.batch_id
left join journal_kind k on k.kind_id = j.kind_id
left join journal_name u on u.name_id = j.user_name_id
left join journal_name a on a.name_id = j.address_name_id;

-- Refuse whatever changes or removes a row. Who may write the file can take them away, and is found
-- by `numerator audit verify`.
create trigger journal_stays before update on journal
begin
    select raise(abort, 'journal keeps its rows as they are');
end;
create trigger journal_batch_stays before update on journal_batch
begin
    select raise(abort, 'journal_batch keeps its rows as they are');
end;
create trigger journal_batch_is_not_removed before delete on journal_batch
begin
    select raise(abort, 'journal_batch keeps its rows as they are');
end;
create trigger journal_kind_stays before update on journal_kind
begin
    select raise(abort, 'journal_kind keeps its rows as they are');
end;
create trigger journal_kind_is_not_removed before delete on journal_kind
begin
    select raise(abort, 'journal_kind keeps its rows as they are');
end;
create trigger journal_name_stays before update on journal_name
begin
    select raise(abort, 'journal_name keeps its rows as they are');
end;
create trigger journal_name_is_not_removed before delete on journal_name
begin
    select raise(abort, 'journal_name keeps its rows as they are');
end;

-- Records of issued numbers that the database refused, whole, in JSON (F13). They count like rows
-- of the journal: retries, look-ups and later numbers find them by the hashes, because no column
-- need take their texts. A row goes when its record is journaled after all.
create table journal_rejected (
    journal_rejected_id integer constraint journal_rejected_pk primary key,
    counter_id integer not null,
    first_value integer not null,
    last_value integer not null,
    step integer not null constraint journal_rejected_step_at_least_1 check (step >= 1),
    allocation_id blob not null,
    raw text not null,
    reason text not null,
    rejected_at_us integer not null,
    number_hash integer not null,
    document_hash integer,
    key_hash integer,
    -- An explained row raises no alarm any more.
    acknowledged_at_us integer,
    acknowledged_by text,
    acknowledged_reason text,
    constraint journal_rejected_once unique (counter_id, first_value, allocation_id),
    constraint journal_rejected_range_in_order check (first_value <= last_value)
) strict;

-- Duplicates that the ledger noticed: the whole second record, so that nothing is lost. Only added
-- to; that one is explained is noted in its row.
create table collision (
    collision_id integer constraint collision_pk primary key,
    counter_id integer not null,
    first_value integer not null,
    last_value integer not null,
    step integer not null constraint collision_step_at_least_1 check (step >= 1),
    allocation_id blob not null,
    other_allocation_id blob,
    number text not null,
    raw text not null,
    noted_at_us integer not null,
    acknowledged_at_us integer,
    acknowledged_by text,
    acknowledged_reason text,
    constraint collision_once unique (counter_id, first_value, allocation_id),
    constraint collision_range_in_order check (first_value <= last_value)
) strict;

-- Revisions: an issued number again with another label. They take no value. Their texts must differ
-- from every number's, now and later: each revision has one more row in the journal, of the counter
-- 0 and with the revision's id for a value, so that the journal's unique key of number and scope
-- holds over both and nothing has to be locked.
create table revision (
    revision_id integer constraint revision_pk primary key,
    counter_id integer not null,
    value integer not null,
    rev text not null,
    allocation_id blob not null,
    number text not null,
    scope text not null,
    document_id text not null,
    user_id text not null,
    ip_address text,
    reason text,
    revised_at_us integer not null,
    -- No label of a number twice; also the way from a number to its revisions.
    constraint revision_label_once unique (counter_id, value, rev),
    -- Serves look-ups by text; the journal's own key keeps it apart from numbers.
    constraint revision_number_once unique (number, scope)
) strict;
