-- Who takes the numbers of a partition, in which epoch, and who may still hold numbers of it.
-- A heartbeat is a counter, never a time (F18); participants are named per epoch, because
-- adoption, acknowledgement and leaving count for one epoch only (F5); the closing of every epoch
-- is kept, because entries of an epoch closed exact are discarded whenever they turn up (F7).
-- old binary: ok (there is none)

create table node (
    node_id bytea not null constraint node_pk primary key,
    label text not null,
    version text not null,
    beat bigint not null default 0 constraint node_beat_not_negative check (beat >= 0),
    started_at_us bigint not null,
    left_at_us bigint,
    adopted_at_us bigint
);

create table partition (
    partition_id integer not null constraint partition_pk primary key
        constraint partition_id_not_negative check (partition_id >= 0),
    epoch bigint not null default 0 constraint partition_epoch_not_negative check (epoch >= 0),
    state text not null default 'open'
        constraint partition_state_known check (state in ('open', 'recovering', 'opening', 'held')),
    owner text not null default 'none'
        constraint partition_owner_known check (owner in ('none', 'redis', 'database')),
    incarnation text,
    last_closing text
        constraint partition_closing_known check (last_closing in ('exact', 'ceiling')),
    last_ceiling_epoch bigint not null default 0,
    actor bytea,
    cause text not null default '',
    changed_at_us bigint not null,
    constraint partition_incarnation_of_redis check ((owner = 'redis') = (incarnation is not null)),
    constraint partition_ceiling_epoch_is_closed
        check (last_ceiling_epoch between 0 and epoch)
);

create table participant (
    partition_id integer not null,
    epoch bigint not null,
    node_id bytea not null,
    state text not null constraint participant_state_known
        check (state in ('joined', 'acknowledged', 'left', 'adopted')),
    changed_at_us bigint not null,
    constraint participant_pk primary key (partition_id, epoch, node_id)
);
-- A node that leaves marks its own rows in every epoch.
create index participant_node on participant (node_id);

create table closed_epoch (
    partition_id integer not null,
    epoch bigint not null,
    closing text not null
        constraint closed_epoch_closing_known check (closing in ('exact', 'ceiling')),
    closed_at_us bigint not null,
    constraint closed_epoch_pk primary key (partition_id, epoch)
);

create table event (
    event_id bigint generated always as identity constraint event_pk primary key,
    at_us bigint not null,
    kind text not null,
    partition_id integer,
    epoch bigint,
    node_id bytea,
    detail text not null
);
