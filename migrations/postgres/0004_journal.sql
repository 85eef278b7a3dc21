-- The record of issued numbers. A row is written once and never changed; it is removed only where
-- an archived segment stands for its values (0005). What a commit shares stands once in a batch
-- that its rows point to. Users, addresses and what repeats within a series are integers that point
-- to small tables. What can be derived is null: the last value of a single number, a step of 1, the
-- path of Redis, the mask where the outline tells it. What makes a number unique stands in the row
-- itself: whatever else is lost or wrong, no number comes twice. Readers use the view
-- `journal_row`.
-- old binary: ok (there is none)

-- Refuses whatever changes or removes a row. The owner of the tables can take it away, and is found
-- by `numerator audit verify`.
create function must_stay_as_it_is() returns trigger language plpgsql as $$
begin
    raise exception '% keeps its rows as they are: % is not for it', tg_table_name, tg_op
        using errcode = 'restrict_violation';
end
$$;

-- Users and addresses of the journal. Written with the first row that names one. Not unique: two
-- transactions that write one name at once do not wait for each other (F31), and a reader finds
-- rows by either id.
create table journal_name (
    name_id integer generated always as identity constraint journal_name_pk primary key,
    name text collate "C" not null
);
create index journal_name_name on journal_name (name);

-- What rows of one type and project have in common under one version of a series. Written and read
-- like names.
create table journal_kind (
    kind_id integer generated always as identity constraint journal_kind_pk primary key,
    series_id bigint not null,
    version integer not null,
    type_code text not null,
    project text
);
create index journal_kind_of_series on journal_kind (series_id, version, type_code, project);

-- What the rows of one commit have in common, for each partition and epoch that took their values,
-- and their seal.
create table journal_batch (
    batch_id bigint generated always as identity constraint journal_batch_pk primary key,
    epoch bigint not null,
    journaled_at_us bigint not null,
    partition_id integer not null,
    -- Rows that it was written with.
    line_count integer not null,
    node_id bytea not null,
    -- SHA-256 over what the rows say.
    seal bytea not null,
    -- HMAC-SHA-256 of the seal, by a key that the database never sees. Null: the process that wrote
    -- it had no key.
    proof bytea
);

-- One row for each issued range of each serial. A number with several serials has one row for each:
-- the first carries the number and, in `rest`, the others. A revision has a row of the counter 0,
-- which does not exist; a segment has a row without a number whose context names its file (0005).
-- There are no foreign keys: a row of a number that was handed out must always fit (F13), and each
-- key would cost a look-up for each row. The idempotency key is not unique: one key may
-- legitimately have two numbers after a close at the ceiling (F13). Columns of fixed width come
-- first: a row has no padding.
create table journal (
    counter_id bigint not null,
    first_value bigint not null constraint journal_first_not_negative check (first_value >= 0),
    batch_id bigint not null,
    issued_at_us bigint not null,
    -- Null: the first value.
    last_value bigint,
    -- Null: 1.
    step bigint constraint journal_step_at_least_1 check (step >= 1),
    kind_id integer not null,
    user_name_id integer not null,
    address_name_id integer,
    document_day date not null,
    -- Null: 0.
    retry_count integer,
    allocation_id bytea not null,
    number text collate "C",
    scope text collate "C",
    -- The partially rendered number, and the short form of it: one of them.
    mask text collate "C",
    outline text collate "C",
    rest text,
    context text,
    document_id text collate "C",
    idempotency_key text collate "C",
    -- The hash of the payload.
    digest bytea,
    -- Null: redis.
    path text constraint journal_path_known check (path in ('database', 'imported')),
    -- No value of a counter twice; the probe for an overlapping neighbour, and for what is missing.
    constraint journal_value_once primary key (counter_id, first_value),
    -- No number twice within its scope. The number leads: the key serves look-ups too.
    constraint journal_number_once unique (number, scope),
    constraint journal_range_in_order check (first_value <= last_value),
    constraint journal_number_has_scope check ((number is null) = (scope is null)
        and (number is null) = (mask is null and outline is null))
);
-- The numbers of a document, the replay of a document's number, and the links of a transaction
-- serial, which begin alike.
create index journal_document_id on journal (document_id) where document_id is not null;
-- The replay of a caller's key that Redis does not know (F1). Keys are long, and no question is for
-- those that begin alike: their hashes are enough.
create index journal_idempotency_key
    on journal using hash (idempotency_key) where idempotency_key is not null;
-- Who took what: the rows of a rare user cannot be found by time without reading all. By the
-- minute, so that the entries of a busy user are packed.
create index journal_user_name on journal (user_name_id, (issued_at_us / 60000000));
-- A database transaction looks for its own earlier attempt (F10); rows of Redis pay nothing.
create index journal_allocation on journal (allocation_id) where path = 'database';
-- Search by time: rows arrive in the order of time, so a few bytes for each block are enough.
create index journal_issued on journal using brin (issued_at_us) with (autosummarize = on);

-- Each row whole. A join costs a look-up, and nothing where its columns are not asked for.
create view journal_row as
select j.counter_id, j.first_value,
    coalesce(j.last_value, j.first_value) as last_value,
    coalesce(j.step, 1) as step,
    j.allocation_id, j.number, j.scope, j.mask, j.outline, j.rest,
    k.series_id, k.version, k.type_code, k.project,
    j.document_id,
    to_char(j.document_day, 'YYYY-MM-DD') as document_date,
    j.context,
    u.name as user_id,
    a.name as ip_address,
    j.idempotency_key,
    coalesce(encode(j.digest, 'hex'), '') as payload_digest,
    j.issued_at_us,
    coalesce(j.retry_count, 0) as retry_count,
    case when j.number is null and j.context is not null then 'archived'
        else coalesce(j.path, 'redis') end as path,
    b.partition_id, b.epoch, b.node_id, b.journaled_at_us,
    j.batch_id, j.user_name_id,
    j.xmin as written_by
from journal j
left join journal_batch b on b.batch_id = j.batch_id
left join journal_kind k on k.kind_id = j.kind_id
left join journal_name u on u.name_id = j.user_name_id
left join journal_name a on a.name_id = j.address_name_id;

create trigger journal_stays before update on journal
    for each row execute function must_stay_as_it_is();
create trigger journal_is_not_emptied before truncate on journal
    for each statement execute function must_stay_as_it_is();
create trigger journal_batch_stays before update or delete on journal_batch
    for each row execute function must_stay_as_it_is();
create trigger journal_batch_is_not_emptied before truncate on journal_batch
    for each statement execute function must_stay_as_it_is();
create trigger journal_kind_stays before update or delete on journal_kind
    for each row execute function must_stay_as_it_is();
create trigger journal_kind_is_not_emptied before truncate on journal_kind
    for each statement execute function must_stay_as_it_is();
create trigger journal_name_stays before update or delete on journal_name
    for each row execute function must_stay_as_it_is();
create trigger journal_name_is_not_emptied before truncate on journal_name
    for each statement execute function must_stay_as_it_is();

-- Records of issued numbers that the database refused, whole, in JSON (F13). They count like rows
-- of the journal: retries, look-ups and later numbers find them by the hashes, because no column
-- need take their texts. A row goes when its record is journaled after all.
create table journal_rejected (
    journal_rejected_id bigint generated always as identity
        constraint journal_rejected_pk primary key,
    counter_id bigint not null,
    first_value bigint not null,
    last_value bigint not null,
    step bigint not null constraint journal_rejected_step_at_least_1 check (step >= 1),
    allocation_id bytea not null,
    raw text not null,
    reason text not null,
    rejected_at_us bigint not null,
    number_hash bigint not null,
    document_hash bigint,
    key_hash bigint,
    -- An explained row raises no alarm any more.
    acknowledged_at_us bigint,
    acknowledged_by text,
    acknowledged_reason text,
    constraint journal_rejected_once unique (counter_id, first_value, allocation_id),
    constraint journal_rejected_range_in_order check (first_value <= last_value)
);

-- Duplicates that the ledger noticed: the whole second record, so that nothing is lost. Only added
-- to; that one is explained is noted in its row.
create table collision (
    collision_id bigint generated always as identity constraint collision_pk primary key,
    counter_id bigint not null,
    first_value bigint not null,
    last_value bigint not null,
    step bigint not null constraint collision_step_at_least_1 check (step >= 1),
    allocation_id bytea not null,
    other_allocation_id bytea,
    number text not null,
    raw text not null,
    noted_at_us bigint not null,
    acknowledged_at_us bigint,
    acknowledged_by text,
    acknowledged_reason text,
    constraint collision_once unique (counter_id, first_value, allocation_id),
    constraint collision_range_in_order check (first_value <= last_value)
);

-- Revisions: an issued number again with another label. They take no value. Their texts must differ
-- from every number's, now and later: each revision has one more row in the journal, of the counter
-- 0 and with the revision's id for a value, so that the journal's unique key of number and scope
-- holds over both and nothing has to be locked.
create table revision (
    revision_id bigint generated always as identity constraint revision_pk primary key,
    counter_id bigint not null,
    value bigint not null,
    rev text collate "C" not null,
    allocation_id bytea not null,
    number text collate "C" not null,
    scope text collate "C" not null,
    document_id text collate "C" not null,
    user_id text collate "C" not null,
    ip_address text,
    reason text,
    revised_at_us bigint not null,
    -- No label of a number twice; also the way from a number to its revisions.
    constraint revision_label_once unique (counter_id, value, rev),
    -- Serves look-ups by text; the journal's own key keeps it apart from numbers.
    constraint revision_number_once unique (number, scope)
);
