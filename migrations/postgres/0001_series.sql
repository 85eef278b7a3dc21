-- What is agreed on once for a ledger, the series with all their versions, and the reference data
-- that series refer to.
-- Codes, ids and names that are compared are compared byte for byte in every engine (F24).
-- old binary: ok (there is none)

-- What every process of a ledger must agree on: the number of partitions, the prefix of keys in
-- Redis and the hash that maps a series to its partition. A process with other settings would give
-- one counter two owners (F8) and is refused. The first process or command on an empty ledger
-- writes the row. The row is also the lock of everybody who changes series.
create table deployment (
    -- Names the ledger in the keys of its Redis.
    deployment_id bytea not null constraint deployment_pk primary key,
    singleton integer not null default 1
        constraint deployment_is_one unique
        constraint deployment_singleton_is_1 check (singleton = 1),
    partitions integer not null constraint deployment_partitions_at_least_1 check (partitions >= 1),
    prefix text not null,
    hash text not null,
    -- How long idempotency records last, in milliseconds (F29). A process with a shorter window
    -- would forget for the others, and a retry would get a second number. Null until the first
    -- process that takes numbers has joined.
    idempotency_window_ms bigint
        constraint deployment_idempotency_window_at_least_1 check (idempotency_window_ms >= 1),
    -- When a series file was applied first, whatever became of it. Null: the ledger may be given
    -- the built-in series.
    own_series_at_us bigint
);

-- One row for each series, for ever: journal rows and counters name it by id. Written by whoever
-- saves series. A removed series keeps its row, and its code gets its id behind it: the code is
-- free again, and no valid code looks like that.
create table series (
    series_id bigint generated always as identity constraint series_pk primary key,
    code text collate "C" not null constraint series_code unique,
    -- Stored and not computed at each reading: where a series lives is a fact.
    partition integer not null constraint series_partition_not_negative check (partition >= 0),
    -- The version in force, of an active series or of another.
    active_version integer not null constraint series_active_version_at_least_1
        check (active_version >= 1),
    -- The first version under which a counter may have been created. It rises with each change of a
    -- series that has no counter yet: only these versions say what issued numbers may look like.
    used_since integer not null default 1
        constraint series_used_since_at_least_1 check (used_since >= 1),
    removed_at_us bigint
);

-- Every version of every series. A row is never changed: an issued number stays explainable by the
-- version that it was made with.
create table series_version (
    series_version_id bigint generated always as identity constraint series_version_pk primary key,
    series_id bigint not null constraint series_version_series references series (series_id),
    version integer not null constraint series_version_at_least_1 check (version >= 1),
    -- The definition, in JSON.
    definition text not null,
    saved_by text not null,
    reason text not null,
    saved_at_us bigint not null,
    -- Whether the series serves requests: turning it off and on is a version like any other change.
    active integer not null default 1
        constraint series_version_active_known check (active in (0, 1)),
    -- The first version of the call that saved this one. Series that were saved in one call came
    -- together: none of them has given a number to a request of another. Null within the
    -- transaction alone.
    saved_with bigint,
    constraint series_version_once unique (series_id, version)
);

-- Rows of reference data: series refer to them by id in their counters and show them by code in
-- their numbers. Written by imports of reference data. A row is switched off and never removed.
create table reference_row (
    table_name text collate "C" not null,
    reference_id text collate "C" not null,
    code text collate "C" not null,
    name text not null,
    active integer not null constraint reference_row_active_known check (active in (0, 1)),
    constraint reference_row_pk primary key (table_name, reference_id),
    constraint reference_row_code unique (table_name, code),
    -- 0 stands for "none" in counter keys.
    constraint reference_row_not_none check (reference_id <> '0' and code <> '0')
);

-- Every code that a row ever had. A code belongs to one id of its table for ever: a number that
-- shows it can be traced to one counter, whatever was renamed since.
create table reference_code (
    table_name text collate "C" not null,
    code text collate "C" not null,
    reference_id text collate "C" not null,
    constraint reference_code_pk primary key (table_name, code),
    constraint reference_code_row foreign key (table_name, reference_id)
        references reference_row (table_name, reference_id)
);
-- The codes of a row.
create index reference_code_of_row on reference_code (table_name, reference_id, code);

-- Which row belongs to which row of another table, such as an organisation to a project.
create table membership (
    table_name text collate "C" not null,
    reference_id text collate "C" not null,
    of_table_name text collate "C" not null,
    of_reference_id text collate "C" not null,
    active integer not null constraint membership_active_known check (active in (0, 1)),
    constraint membership_pk
        primary key (table_name, reference_id, of_table_name, of_reference_id),
    constraint membership_member foreign key (table_name, reference_id)
        references reference_row (table_name, reference_id),
    constraint membership_group foreign key (of_table_name, of_reference_id)
        references reference_row (table_name, reference_id)
);

-- One row for each import that changed reference data: who, when, why and what. Only added to. The
-- highest id is the stamp by which running processes notice a change.
create table reference_change (
    reference_change_id bigint generated always as identity constraint reference_change_pk
        primary key,
    table_name text not null,
    change text not null,
    changed_by text not null,
    reason text not null,
    changed_at_us bigint not null
);
