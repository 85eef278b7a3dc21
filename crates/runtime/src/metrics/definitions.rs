//! The table of all metrics: name, kind, labels, help. A metric that is not listed here does not
//! exist; `docs/metrics.md` is compared with this table.

use metrics::{
    Counter, Gauge, Histogram, Label, Unit, counter, describe_counter, describe_gauge,
    describe_histogram, gauge, histogram,
};

/// What a metric is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    /// Only rises; begins at 0 with the process.
    Counter,
    /// The latest value.
    Gauge,
    /// Samples, counted up to each of these bounds.
    Histogram(&'static [f64]),
}

impl Kind {
    /// The kind's word in Prometheus's text format.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Histogram(_) => "histogram",
        }
    }
}

/// One metric.
#[derive(Clone, Copy, Debug)]
pub struct Definition {
    /// Its name; the unit comes last.
    pub name: &'static str,
    /// What it is.
    pub kind: Kind,
    /// Names of its labels.
    pub labels: &'static [&'static str],
    /// Its help text.
    pub help: &'static str,
}

/// Durations in seconds: from a call to a Redis on the same machine to the time limit of a request.
const SECONDS: Kind = Kind::Histogram(&[
    0.0001, 0.000_25, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5,
    5.0, 10.0, 20.0, 40.0,
]);
/// How many at a time: powers of two up to the largest flight.
const SIZES: Kind =
    Kind::Histogram(&[1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0, 1_024.0]);
/// Attempts: one bucket each, up to the most that one request may make.
const TRIES: Kind = Kind::Histogram(&[0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 10.0]);
const COUNTER: Kind = Kind::Counter;
const GAUGE: Kind = Kind::Gauge;

/// Makes a constant of each definition, and the list of all.
macro_rules! definitions {
    ($($constant:ident $kind:ident $name:literal [$($label:literal),*] $help:literal;)*) => {
        $(
            #[doc = $help]
            pub(super) const $constant: Definition = Definition {
                name: $name, kind: $kind, labels: &[$($label),*], help: $help,
            };
        )*
        /// Every metric, in the order of the documentation.
        pub const ALL: &[Definition] = &[$($constant),*];
    };
}

definitions! {
    ISSUED COUNTER "numerator_issued_total" ["series", "path"]
        "Numbers issued, by series and path (redis, database).";
    REPLAYED COUNTER "numerator_replayed_total" ["series"]
        "Requests answered with an earlier number, by series.";
    ANSWERS COUNTER "numerator_answers_total" ["outcome"]
        "Requests for a number, by outcome: issued, replayed, refused (the request or its series \
         does not allow it), unavailable (a retry is useful), failed (neither).";
    ISSUE_SECONDS SECONDS "numerator_issue_seconds" []
        "Time from a checked request to its number, issued or replayed.";
    QUEUE_WAIT_SECONDS SECONDS "numerator_queue_wait_seconds" []
        "Time that a request waits for its first flight or transaction.";
    QUEUE_LENGTH GAUGE "numerator_queue_length" ["partition"]
        "Requests that wait or are under way, by partition.";
    QUEUE_MAX GAUGE "numerator_queue_max" []
        "Requests that may wait for one partition (`allocator.queue_max`).";
    FLIGHT_SECONDS SECONDS "numerator_flight_seconds" ["path"]
        "Time of a flight to Redis, or of a transaction of the database path, by path.";
    FLIGHT_REQUESTS SIZES "numerator_flight_requests" ["path"]
        "Requests in a flight or transaction, by path.";
    REQUEST_RETRIES TRIES "numerator_request_retries" []
        "Flights and transactions that a request needed beyond the first to get its number.";
    RETRIES COUNTER "numerator_retries_total" ["path", "reason"]
        "Flights and transactions tried again, by path and reason (database: lock, conflict, \
         connection; redis: unknown, not-executed).";
    LOCK_WAIT_SECONDS SECONDS "numerator_lock_wait_seconds" []
        "Time that a transaction of the database path waits for its locks, granted or not.";
    LOCK_ACQUISITIONS COUNTER "numerator_lock_acquisitions_total" ["outcome"]
        "Transactions of the database path by what became of their locks: granted, contended (set \
         aside to wait beside the partition worker), timeout.";
    JOBS_FAILED COUNTER "numerator_chores_failed_total" []
        "Seeds, raises, questions, waits beside a partition worker and adoptions that panicked, \
         and are tried again. Must stay 0.";
    RECORDS_SHED COUNTER "numerator_idempotency_records_shed_total" []
        "Idempotency records that went before their window was over, for want of room.";
    FENCED COUNTER "numerator_fenced_total" []
        "Epochs that this node left because a script refused or showed something amiss.";
    RECOVERIES COUNTER "numerator_recoveries_total" ["kind", "closing"]
        "Recoveries of a partition led by this node, by kind (recovery, fallback, return) and by \
         how the epoch closed (exact, ceiling).";
    RECOVERY_SECONDS SECONDS "numerator_recovery_seconds" ["kind"]
        "Time of a recovery led by this node, by kind.";
    ADOPTED COUNTER "numerator_adopted_total" []
        "Outbox entries of dead nodes journaled by this node.";
    NODES_DIED COUNTER "numerator_nodes_died_total" []
        "Nodes that fell silent without leaving and were retired by this node; one that only slept \
         comes back as another node.";
    DUPLICATES COUNTER "numerator_duplicates_total" []
        "Numbers that the ledger saw twice, as this process met them. Must stay 0.";
    COLLISIONS GAUGE "numerator_collisions" []
        "Collisions of the ledger that are not acknowledged, of any process, command and time. \
         Must stay 0; NaN: the ledger was not read.";
    REJECTED COUNTER "numerator_rejected_total" []
        "Records refused by the ledger and kept as rejected.";
    REJECTED_RECORDS GAUGE "numerator_rejected_records" []
        "Rejected records of the ledger, in rows, that are neither journaled again nor \
         acknowledged, of any process and time. Must stay 0; NaN: the ledger was not read.";
    TOKENS_UNTOLD GAUGE "numerator_tokens_untold" []
        "Tokens of the ledger, in force or revoked, that are not as their last event left them, or \
         that no event tells of: written past the program. Must stay 0; NaN: not looked at, or the \
         last look failed.";
    TOKENS_UNTOLD_TOTAL COUNTER "numerator_tokens_untold_total" []
        "Such tokens as this process met them, each once as long as it stays so. Must stay 0.";
    LEDGER_WENT_BACK COUNTER "numerator_ledger_went_back_total" []
        "Times that the ledger was held because it had gone back.";
    SWEPT COUNTER "numerator_swept_total" ["what"]
        "What this node removed because no question needs it any more, by what it was: counters \
         of old epochs in Redis, participants and nodes in the ledger.";
    SWEEPS_FAILED COUNTER "numerator_sweeps_failed_total" []
        "Rounds of the sweep that a store ended early; the next one begins anew.";
    REDIS_COUNTERS GAUGE "numerator_redis_counters" ["partition"]
        "Counters of the present epoch in Redis, by partition, as the node that sweeps counted \
         them last; NaN: another node does, or it has not counted yet.";
    RESERVATIONS GAUGE "numerator_reservations" ["state"]
        "Live reservations of the ledger, by state (reserved, confirmed, cancelled), as this \
         process counted them last.";
    RESERVATIONS_ENDED COUNTER "numerator_reservations_ended_total" ["act"]
        "Reservations that this process swept, by what became of them: issued, cancelled, expired.";
    RESERVATION_CONFIRMED_AGE GAUGE "numerator_reservation_confirmed_age_seconds" []
        "For how long the oldest confirmed reservation waits for the journal; 0 without one.";
    RESERVATION_OVER_AGE GAUGE "numerator_reservation_over_age_seconds" []
        "For how long the time of the oldest reservation is over that a transaction of its caller \
         may still hold; 0 without one.";
    GAPS COUNTER "numerator_gaps_total" ["reason"]
        "Runs of values that this node entered into the gap register, by reason; one that is \
         entered again after a lost transaction counts again.";
    GAP_VALUES COUNTER "numerator_gap_values_total" ["reason"]
        "Values in those runs, by reason.";
    CEILING_RAISES COUNTER "numerator_ceiling_raises_total" []
        "Ceilings raised.";
    CEILING_WAITS COUNTER "numerator_ceiling_waits_total" []
        "Requests that met a ceiling and had to wait until it was raised.";
    CEILING_USED GAUGE "numerator_ceiling_used_ratio" ["partition"]
        "Largest share of its last grant that a counter in use has taken, by partition; 0: no \
         counter is in use.";
    CEILING_ROOM GAUGE "numerator_ceiling_room_numbers" ["partition"]
        "Numbers left below the ceiling of that counter; 0: none left, or no counter is in use.";
    CEILING_ROOM_SECONDS GAUGE "numerator_ceiling_room_seconds" ["partition"]
        "How long the numbers left below a ceiling last at the present rate of their counter, for \
         the counter in use that runs out first; +Inf: no counter is in use.";
    JOURNALED COUNTER "numerator_journaled_total" []
        "Records of the Redis path committed to the journal.";
    JOURNAL_LAG_RECORDS GAUGE "numerator_journal_lag_records" []
        "Records handed out and not committed to the journal yet.";
    JOURNAL_LAG_SECONDS GAUGE "numerator_journal_lag_seconds" []
        "How long the oldest of them has waited.";
    JOURNAL_QUEUE_MAX GAUGE "numerator_journal_queue_max" []
        "Records that may wait for the journal (`journal.queue_max`); past it, requests are \
         refused.";
    JOURNAL_BATCH_SECONDS SECONDS "numerator_journal_batch_seconds" []
        "Time to commit a batch of the journal, retries included.";
    JOURNAL_BATCH_RECORDS SIZES "numerator_journal_batch_records" []
        "Records in a batch of the journal.";
    OUTBOX_ENTRIES GAUGE "numerator_outbox_entries" ["partition"]
        "Entries in the outboxes of all nodes in Redis, by partition; NaN: Redis was not read.";
    ASKING_SECONDS GAUGE "numerator_asking_seconds" ["partition"]
        "How long new documents of the partition still need the ledger, because Redis does not \
         have all records of earlier ones, after a loss or a change of `idempotency.window`: keys \
         that it does not know are looked up in the journal. 0: they do not. As of the last probe.";
    LEDGER_UP GAUGE "numerator_ledger_up" []
        "1 while the ledger answers this node's heartbeat.";
    CLOCK_OFFSET GAUGE "numerator_clock_offset_seconds" []
        "By how much this process's clock is ahead of PostgreSQL's; at a SQLite file, of the \
         nearest one of another process there. Negative: behind it; NaN: nobody else tells the \
         time.";
    CHECKPOINT_AGE GAUGE "numerator_checkpoint_age_seconds" []
        "How long ago all of the record was under a checkpoint, as this process found or made it, \
         as of its last try; where it has made none, how old the ledger's last one is. NaN: it has \
         no `audit.key`, or has not tried yet.";
    CHECKPOINT_PERIOD GAUGE "numerator_checkpoint_period_seconds" []
        "Time between two checkpoints (`audit.checkpoint`).";
    CERTIFICATE_LEFT GAUGE "numerator_certificate_left_seconds" ["certificate"]
        "Seconds until a certificate ends: server (what `http.listen` shows: of its chain \
         the one that ends first), database-authority and database-client (`sslrootcert` and \
         `sslcert` of `database.url`), authority (`SSL_CERT_FILE`); of several authorities the \
         last. Negative: it has ended; NaN: there is none, or it cannot be read.";
    TOKEN_LEFT GAUGE "numerator_token_left_seconds" []
        "Seconds until the first token of those in force ends, without those that have ended; \
         +Inf: none of them does.";
    LEDGER_HAZARD GAUGE "numerator_ledger_hazard" ["hazard"]
        "1 where the database is set up so that it may lose commits, by hazard; NaN: not known.";
    LEDGER_CALL_SECONDS SECONDS "numerator_ledger_call_seconds" ["call"]
        "Time of a call to the ledger, by kind: heartbeat, append (journal), take (database path), \
         seed, raise, replays, other.";
    LEDGER_ERRORS COUNTER "numerator_ledger_errors_total" ["reason"]
        "Calls that the ledger did not carry out, by reason: lock, conflict, connection, fenced, \
         refused.";
    LEDGER_CONNECTIONS GAUGE "numerator_ledger_connections" ["state"]
        "Connections to the ledger that calls share, by state (used, idle).";
    LEDGER_CONNECTIONS_MAX GAUGE "numerator_ledger_connections_max" []
        "Connections to the ledger that calls share and that may be open at once; heartbeat, watch \
         and journal have one each beside.";
    REDIS_CONFIGURED GAUGE "numerator_redis_configured" []
        "1 where `redis.url` is set.";
    REDIS_UP GAUGE "numerator_redis_up" ["partition"]
        "1 while scripts that write succeed in the partition's Redis, as this node sees it.";
    REDIS_CALL_SECONDS SECONDS "numerator_redis_call_seconds" ["verb"]
        "Time of a script call to Redis, by verb.";
    REDIS_ERRORS COUNTER "numerator_redis_errors_total" ["reason"]
        "Script calls without an answer that can be used, by reason: unknown, not-executed, \
         broken, garbled.";
    PARTITION_EPOCH GAUGE "numerator_partition_epoch" ["partition"]
        "Epoch of the partition, as the ledger shows it; that of gapless series is the last \
         partition.";
    PARTITION_OWNER GAUGE "numerator_partition_owner" ["partition", "owner"]
        "1 for the owner of the partition (redis, database, none).";
    PARTITION_STATE GAUGE "numerator_partition_state" ["partition", "state"]
        "1 for the state of the partition (open, recovering, opening, held).";
    PARTITION_SERVING GAUGE "numerator_partition_serving" ["partition"]
        "1 while this node can issue numbers of the partition.";
    READY GAUGE "numerator_ready" []
        "1 while a new document would get its number from this node, as `/readyz` says.";
    NODES GAUGE "numerator_nodes" ["state"]
        "Nodes that have not left, as this node sees them (alive: its heartbeat was seen to move; \
         silent: it stands still, and its outboxes wait to be adopted); NaN: the ledger was not \
         read.";
    SERIES_SET_ASIDE GAUGE "numerator_series_set_aside" []
        "Stored series that this version of the program cannot use, or that accept an ambiguity \
         without being `gapless` throughout: their requests are refused, and the log says why. \
         Must stay 0.";
    COUNTER_USED GAUGE "numerator_counter_used_ratio" ["series", "serial", "key"]
        "Share of its values that a counter has taken: the fullest ones from which this node took \
         a number within a day.";
    COUNTER_EXHAUSTION GAUGE "numerator_counter_exhaustion_seconds" ["series", "serial", "key"]
        "Time until the counter is used up at its present rate; +Inf: it does not move, or was \
         watched for less than a minute.";
    REQUESTS COUNTER "numerator_requests_total" ["route", "status"]
        "HTTP requests answered, by route and status (499: the client left).";
    REQUEST_SECONDS SECONDS "numerator_request_seconds" ["route"]
        "Time to answer an HTTP request, by route.";
    PROBLEMS COUNTER "numerator_problems_total" ["slug"]
        "HTTP requests answered with a problem, by its slug.";
    SERIAL_CHECKS COUNTER "numerator_serial_checks_total" ["outcome"]
        "Checks of interface serials, by outcome (accepted, repeated).";
    SERIAL_STEPS COUNTER "numerator_serial_steps_total" ["outcome"]
        "Calls about steps of system serials, by outcome (begun, in-progress, already-processed, \
         succeeded, failed, refused).";
    EXTERNAL_CALLS COUNTER "numerator_external_calls_total" ["outcome"]
        "Values that series asked of sources (`external.*`), by outcome: answered, unavailable, \
         refused (by the source), invalid; taken: answered before, and another number has its \
         text.";
    PROCESS_START GAUGE "process_start_time_seconds" []
        "When this process began to count, in seconds since 1970.";
    PROCESS_CPU COUNTER "process_cpu_seconds_total" []
        "Seconds of the processor that this process has used, its own and the kernel's for it.";
    PROCESS_MEMORY GAUGE "process_resident_memory_bytes" []
        "Memory of this process that is not swapped out.";
    PROCESS_FDS GAUGE "process_open_fds" []
        "File descriptors that are open: connections, files.";
    PROCESS_FDS_MAX GAUGE "process_max_fds" []
        "File descriptors that may be open; +Inf: any number.";
    BUILD_INFO GAUGE "numerator_build_info" ["version", "engine"]
        "1; the version of the program and the engine of its ledger.";
}

impl Definition {
    /// The unit, as the last part of the name.
    fn unit(&self) -> Unit {
        if self.name.ends_with("_seconds") { Unit::Seconds } else { Unit::Count }
    }

    /// Gives the recorder its help text.
    pub(super) fn describe(&self) {
        match self.kind {
            Kind::Counter => describe_counter!(self.name, self.unit(), self.help),
            Kind::Gauge => describe_gauge!(self.name, self.unit(), self.help),
            Kind::Histogram(_) => describe_histogram!(self.name, self.unit(), self.help),
        }
    }

    /// The handle for these values of its labels; it counts from 0 immediately.
    pub(super) fn counter(&self, values: &[&str]) -> Counter {
        assert_eq!(self.kind, Kind::Counter, "{}", self.name);
        let handle = counter!(self.name, self.labelled(values));
        handle.increment(0);
        handle
    }

    /// The handle for these values of its labels; it is set to 0.
    pub(super) fn gauge(&self, values: &[&str]) -> Gauge {
        assert_eq!(self.kind, Kind::Gauge, "{}", self.name);
        gauge!(self.name, self.labelled(values))
    }

    /// The handle for these values of its labels; it has no samples yet.
    pub(super) fn histogram(&self, values: &[&str]) -> Histogram {
        assert!(matches!(self.kind, Kind::Histogram(_)), "{}", self.name);
        histogram!(self.name, self.labelled(values))
    }

    fn labelled(&self, values: &[&str]) -> Vec<Label> {
        assert_eq!(self.labels.len(), values.len(), "labels of {}", self.name);
        let pairs = self.labels.iter().zip(values);
        pairs.map(|(name, value)| Label::new(*name, (*value).to_owned())).collect()
    }
}
