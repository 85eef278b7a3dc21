-- What is written once per ledger (number of partitions, prefix and hash: a node with other
-- settings would give one counter two owners, F8), and the series with all their versions: an
-- issued number must be explainable by the version it was made with (R4.2).
-- old binary: ok (there is none)

create table deployment (
    deployment_id bytea not null constraint deployment_pk primary key,
    singleton integer not null default 1
        constraint deployment_is_one unique
        constraint deployment_singleton_is_1 check (singleton = 1),
    partitions integer not null constraint deployment_partitions_at_least_1 check (partitions >= 1),
    prefix text not null,
    hash text not null
);

-- The partition is stored, not computed at each reading: where a series lives is a fact.
create table series (
    series_id bigint generated always as identity constraint series_pk primary key,
    code text collate "C" not null constraint series_code unique,
    partition integer not null constraint series_partition_not_negative check (partition >= 0),
    active_version integer not null constraint series_active_version_at_least_1
        check (active_version >= 1)
);

create table series_version (
    series_version_id bigint generated always as identity constraint series_version_pk primary key,
    series_id bigint not null constraint series_version_series references series (series_id),
    version integer not null constraint series_version_at_least_1 check (version >= 1),
    definition text not null,
    saved_by text not null,
    reason text not null,
    saved_at_us bigint not null,
    constraint series_version_once unique (series_id, version)
);
