-- Who works on the ledger, who takes the numbers of each partition in which epoch, which history of
-- the ledger the processes have agreed on, and what happened.
-- old binary: ok (there is none)

-- Every process that joined the ledger, under an id that is never used again. Its process writes
-- the row with each heartbeat. A heartbeat is a counter and never a time (F18). The sweep removes
-- the row long after the process has left or was adopted.
create table node (
    node_id bytea not null constraint node_pk primary key,
    label text not null,
    version text not null,
    beat bigint not null default 0 constraint node_beat_not_negative check (beat >= 0),
    -- Journal batches that it has committed: a ledger that knows of fewer than it confirmed has
    -- gone back (F9).
    batches bigint not null default 0
        constraint node_batches_not_negative check (batches >= 0),
    started_at_us bigint not null,
    left_at_us bigint,
    adopted_at_us bigint,
    -- Which data set of Redis the process sees, in JSON: {incarnation: [partitions]}. Processes
    -- that see different ones must not move a partition (F22). Null: a command, which has no
    -- opinion.
    sight text,
    -- What keeps the process from its work, in JSON, as the program that wrote it knows it.
    report text,
    -- What its clock said when it told the time last, and what the server's said then (F37).
    told_at_us bigint,
    heard_at_us bigint,
    -- Which stamps of series, reference data and tokens it knows: whoever saves some waits until
    -- all processes have them.
    series_known bigint,
    reference_known bigint,
    tokens_known bigint
);

-- Nodes whose rows were swept: 16 bytes each, for ever. Only this identity excuses that a row is
-- missing: a missing row without it means that the ledger went back (F37).
create table swept_node (
    node_id bytea not null constraint swept_node_pk primary key
        constraint swept_node_id_whole check (octet_length(node_id) = 16)
);

-- One row for each partition, and one more, the highest, for gapless series: the database always
-- owns that one. Written with the deployment; each later change is a compare-and-set of owner,
-- epoch and state by the process that makes it.
create table partition (
    partition_id integer not null constraint partition_pk primary key
        constraint partition_id_not_negative check (partition_id >= 0),
    -- Rises by one with each change of ownership.
    epoch bigint not null default 0 constraint partition_epoch_not_negative check (epoch >= 0),
    state text not null default 'open'
        constraint partition_state_known check (state in ('open', 'recovering', 'opening', 'held')),
    owner text not null default 'none'
        constraint partition_owner_known check (owner in ('none', 'redis', 'database')),
    -- The data set of Redis that owns the epoch.
    incarnation text,
    -- How the epoch before was closed.
    last_closing text
        constraint partition_closing_known check (last_closing in ('exact', 'ceiling')),
    -- The last epoch that was closed at the ceiling.
    last_ceiling_epoch bigint not null default 0,
    -- Counters of this epoch and of older ones go on above their ceilings, however theirs was
    -- closed: a release of a ledger that went back has lifted them (F32).
    lifted_epoch bigint not null default 0
        constraint partition_lifted_epoch_not_negative check (lifted_epoch >= 0),
    -- The last epoch in which a ceiling was raised far above its counter: only there is it looked
    -- for such ones, which become large gaps in a crash.
    tall_epoch bigint not null default 0
        constraint partition_tall_epoch_not_negative check (tall_epoch >= 0),
    -- Who bumped or claimed the epoch while it is not open, and why it began.
    actor bytea,
    cause text not null default '',
    -- Who should own it from its next epoch on, by an operator's word.
    wanted text not null default 'auto'
        constraint partition_wanted_known check (wanted in ('auto', 'database')),
    -- Which command has lent it to the database for as long as the command runs, by 16 random
    -- bytes, and the node of that command: once the node is given up, the watch takes the partition
    -- back. Apart from `wanted`: a command takes back what it set, and nothing else.
    lent_to bytea
        constraint partition_lent_to_is_an_id check (length(lent_to) = 16),
    lender bytea
        constraint partition_lender_is_an_id check (length(lender) = 16),
    -- While held: the highest epoch that a node or Redis has shown above the ledger's own. The
    -- epoch in which an operator releases the partition must lie above it (F9).
    seen_epoch bigint not null default 0
        constraint partition_seen_epoch_not_negative check (seen_epoch >= 0),
    -- While held: the epoch of Redis after which none followed, by the word of a process that took
    -- part in it. Without that word Redis cannot say how far counters came: the database may have
    -- served since (F9).
    vouched_epoch bigint not null default 0
        constraint partition_vouched_epoch_not_negative check (vouched_epoch >= 0),
    changed_at_us bigint not null,
    constraint partition_incarnation_of_redis check ((owner = 'redis') = (incarnation is not null)),
    constraint partition_ceiling_epoch_is_closed
        check (last_ceiling_epoch between 0 and epoch)
);

-- Which nodes may hold numbers of an epoch that Redis owned. Named for each epoch, because
-- adoption, acknowledgement and leaving count for one epoch alone (F5). An epoch is closed exact
-- only once none of its rows is `joined`.
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

-- How each epoch ended, for ever: records of an epoch that was closed exact are discarded whenever
-- they turn up (F7), and a counter that nobody has touched since goes on by how its epoch ended.
create table closed_epoch (
    partition_id integer not null,
    epoch bigint not null,
    closing text not null
        constraint closed_epoch_closing_known check (closing in ('exact', 'ceiling')),
    closed_at_us bigint not null,
    constraint closed_epoch_pk primary key (partition_id, epoch)
);

-- The node numbers of `{SNOWFLAKE}` ids: who holds each, and up to which time. The rows are made
-- here; processes change them. Every id of a number has a time below `until_ms`, and whoever takes
-- the number over starts there: a holder that slept, or whose clock jumped, never gives an id that
-- another one gives (F23). A number is free when it has no holder, or its holder has left or was
-- adopted.
create table snowflake_lease (
    node_number integer not null constraint snowflake_lease_pk primary key
        constraint snowflake_lease_number_has_10_bits check (node_number between 0 and 1023),
    -- The node that took it last.
    holder bytea,
    -- Milliseconds of UTC since 1970.
    until_ms bigint not null default 0
);
insert into snowflake_lease (node_number) select generate_series(0, 1023);

-- The continuous history of the ledger that its processes have agreed on. The ledger itself may go
-- back: a standby that lags is promoted, or a dump is put in its place. Each transaction compares
-- this row with the server that it runs on (F25).
create table incarnation (
    only_row boolean primary key default true constraint incarnation_is_one check (only_row),
    -- Rises whenever partitions are held.
    number bigint not null constraint incarnation_number_is_positive check (number > 0),
    -- Drawn with each number: of two branches of one ledger each draws its own.
    nonce bytea not null constraint incarnation_nonce_is_an_id check (length(nonce) = 16),
    -- The timeline and the database in which it was written.
    life text not null,
    -- The transaction that wrote this version of the row: a dump that is put back writes it anew.
    born bigint not null
);

-- Every incarnation that this ledger descends from. A later incarnation is accepted only by
-- descent: a copy that was held and released elsewhere counts further, and is another branch all
-- the same (F36). Written with each new incarnation.
create table incarnation_line (
    nonce bytea not null constraint incarnation_line_pkey primary key
        constraint incarnation_line_nonce_is_an_id check (length(nonce) = 16),
    number bigint not null constraint incarnation_line_number_is_positive check (number > 0),
    -- When it was drawn; null where the process that drew the next one knew it from another copy.
    drawn_at_us bigint,
    -- When the next one was drawn by a process that knew this one; null while it is in force. What
    -- was confirmed in it later, and is not here, was confirmed by another branch.
    replaced_at_us bigint
);

-- Which server this is: changes from the first moment of a promotion, and with a copy of the
-- database. In PL/pgSQL, because each transaction asks: PostgreSQL plans a function of the language
-- SQL anew for each statement, and one of PL/pgSQL once for each session.
create function ledger_life() returns text language plpgsql volatile as $$
begin
    return left(pg_walfile_name(pg_current_wal_insert_lsn()), 8) || ' '
        || (select oid from pg_database where datname = current_database());
end
$$;

-- Fails unless the ledger lives the life that was agreed on under this nonce.
create function must_be_incarnation(wanted bytea) returns void language plpgsql volatile as $$
begin
    if pg_is_in_recovery() then
        raise exception 'the server is a standby' using errcode = '25006';
    end if;
    perform 1 from incarnation i where i.nonce = wanted and i.life = ledger_life()
        and i.born = i.xmin::text::bigint;
    if not found then
        raise exception 'it is not the incarnation that was agreed on' using errcode = 'NU001';
    end if;
end
$$;

-- A ledger that went back under its processes may be agreed on again by all of them. One row while
-- that is under way (F25).
create table inquest (
    -- Of the incarnation that was drawn with the hold.
    nonce bytea primary key constraint inquest_nonce_is_an_id check (length(nonce) = 16),
    -- Nodes that neither had left nor were adopted when it began, and those of an inquest that did
    -- not end, in JSON.
    roster text not null,
    begun_at_us bigint not null
);

-- What each process says in it. Goes with its inquest.
create table inquest_report (
    nonce bytea not null references inquest on delete cascade,
    -- The identity under which the process reports.
    node_id bytea not null,
    -- Whether it remembers all that was confirmed to it and may be forgotten here.
    is_complete boolean not null,
    -- Every identity that it took, the epochs and the other nodes that it has seen, in JSON.
    identities text not null,
    epochs text not null,
    seen text not null,
    primary key (nonce, node_id)
);

-- What happened and was done: recoveries, adoptions, changes of series and tokens, commands. Only
-- added to; checkpoints bind its rows.
create table event (
    event_id bigint generated always as identity constraint event_pk primary key,
    at_us bigint not null,
    kind text not null,
    partition_id integer,
    epoch bigint,
    node_id bytea,
    -- In JSON.
    detail text not null
);
-- Page by page by time; those of one time in the order of their rows.
create index event_time on event (at_us, event_id);
-- From the newest back: a token in force is compared with its last event.
create index event_of_tokens on event (event_id)
    where kind in ('token-created', 'token-revoked', 'token-rotated');
