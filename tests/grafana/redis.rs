//! Redis, which store owns the partitions, and what recoveries do.

use super::model::{Dashboard, Panel, Row};
use super::promql::{by, gauge, increase, mean, quantile, rate};

pub(super) fn dashboard() -> Dashboard {
    Dashboard {
        uid: "numerator-redis",
        title: "numerator: Redis and ownership",
        description: "Who takes the numbers of each partition, and how Redis does.",
        rows: vec![ownership(), recoveries(), calls(), sweep()],
    }
}

fn ownership() -> Row {
    let panels = vec![
        Panel::lines(
            "Partitions by owner",
            "short",
            vec![(
                by("sum", "owner", &gauge("max", "partition, owner", "numerator_partition_owner")),
                "{{owner}}",
            )],
            "Who takes the numbers. The database always owns the partition of gapless series.",
        )
        .see("redis-unavailable"),
        Panel::lines(
            "Partitions by state",
            "short",
            vec![(
                by("sum", "state", &gauge("max", "partition, state", "numerator_partition_state")),
                "{{state}}",
            )],
            "Open is the ordinary state; recovering and opening last seconds; held waits for an \
             operator.",
        )
        .see("a-recovery-stands-still"),
        Panel::lines(
            "Partitions that issue",
            "short",
            vec![(gauge("sum", "instance", "numerator_partition_serving"), "{{instance}}")],
            "In how many partitions each process can issue numbers right now.",
        )
        .see("nothing-is-issued"),
        Panel::lines(
            "Redis by partition",
            "short",
            vec![(gauge("max", "partition", "numerator_redis_up"), "partition {{partition}}")],
            "1 while scripts that write succeed, for at least one process.",
        )
        .see("redis-unavailable"),
        Panel::lines(
            "Epochs",
            "short",
            vec![(
                gauge("max", "partition", "numerator_partition_epoch"),
                "partition {{partition}}",
            )],
            "Number of the ownership of each partition: rises with each recovery, never falls.",
        ),
        Panel::lines(
            "Nodes",
            "short",
            vec![(gauge("max", "state", "numerator_nodes"), "{{state}}")],
            "Nodes that have not left, by whether their heartbeat moves. No line while the ledger \
             cannot be read.",
        )
        .see("a-process-is-missing"),
    ];
    Row { title: "Ownership", panels }
}

fn recoveries() -> Row {
    let panels = vec![
        Panel::lines(
            "Recoveries",
            "short",
            vec![(
                increase("kind, closing", "numerator_recoveries_total", "$__rate_interval"),
                "{{kind}}, {{closing}}",
            )],
            "Changes of ownership. An epoch that closes exact loses nothing; one that closes at \
             the ceiling may have lost records.",
        )
        .see("closed-at-the-ceiling"),
        Panel::lines(
            "Recovery time, p95",
            "s",
            vec![(quantile("0.95", "numerator_recovery_seconds", "le, kind"), "{{kind}}")],
            "How long a partition was without an owner. No line while nothing happens.",
        )
        .see("a-recovery-stands-still"),
        Panel::lines(
            "Fences",
            "short",
            vec![(
                increase("instance", "numerator_fenced_total", "$__rate_interval"),
                "{{instance}}",
            )],
            "Epochs that a process left because a script refused or showed something amiss.",
        ),
        Panel::lines(
            "Nodes that died",
            "short",
            vec![(
                increase("instance", "numerator_nodes_died_total", "$__rate_interval"),
                "retired by {{instance}}",
            )],
            "Nodes that fell silent without leaving, by who adopted what they left.",
        )
        .see("a-process-is-missing"),
    ];
    Row { title: "Recoveries", panels }
}

fn calls() -> Row {
    let panels = vec![
        Panel::lines(
            "Flights, p95",
            "s",
            vec![(quantile("0.95", "numerator_flight_seconds", "le, path"), "{{path}}")],
            "Time of a flight to Redis, and of a transaction of the database path. No line while \
             nothing happens.",
        )
        .see("long-waits"),
        Panel::lines(
            "Requests per flight",
            "short",
            vec![(mean("path", "numerator_flight_requests"), "{{path}}")],
            "How many requests share a flight or transaction: the more wait, the more. No line \
             while nothing happens.",
        ),
        Panel::lines(
            "Script calls, p95 by verb",
            "s",
            vec![(quantile("0.95", "numerator_redis_call_seconds", "le, verb"), "{{verb}}")],
            "Time of a script call to Redis. No line while nothing happens.",
        )
        .see("redis-unavailable"),
        Panel::lines(
            "Script calls per second",
            "ops",
            vec![(rate("verb", "numerator_redis_call_seconds_count"), "{{verb}}")],
            "Script calls to Redis, by verb.",
        ),
        Panel::lines(
            "Script errors",
            "ops",
            vec![(rate("reason", "numerator_redis_errors_total"), "{{reason}}")],
            "Script calls without an answer that can be used, by reason.",
        )
        .see("redis-unavailable"),
        Panel::lines(
            "Idempotency records shed",
            "ops",
            vec![(rate("instance", "numerator_idempotency_records_shed_total"), "{{instance}}")],
            "Records that went before their window for want of room (idempotency.records_max): \
             new keys are looked up in the journal.",
        )
        .see("idempotency-records-are-shed"),
        Panel::lines(
            "New documents need the ledger",
            "s",
            vec![(
                gauge("max", "partition", "numerator_asking_seconds"),
                "partition {{partition}}",
            )],
            "For how long: Redis has lost records of earlier documents, and new ones are looked up \
             in the journal.",
        )
        .see("new-documents-need-the-ledger"),
    ];
    Row { title: "Calls", panels }
}

fn sweep() -> Row {
    let panels = vec![
        Panel::lines(
            "Counters of the present epoch",
            "short",
            vec![(
                gauge("max", "partition", "numerator_redis_counters"),
                "partition {{partition}}",
            )],
            "Counters in Redis as the process that sweeps counted them last. Past \
             sweep.counters_max the epoch ends by plan, and those of periods past go sweep.keep \
             later. No line until they are counted.",
        ),
        Panel::lines(
            "Swept",
            "short",
            vec![
                (increase("what", "numerator_swept_total", "$__rate_interval"), "{{what}}"),
                (increase("", "numerator_sweeps_failed_total", "$__rate_interval"), "ended early"),
            ],
            "What was removed because no question needs it any more: counters of old epochs in \
             Redis, participations and nodes in the ledger; and rounds that a store ended early.",
        )
        .see("work-in-the-background-fails"),
    ];
    Row { title: "Sweep", panels }
}
