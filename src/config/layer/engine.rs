//! The sections of issuing, from `node` to `retry`.

use serde::{Deserialize, Serialize};

use super::issuing;
use crate::config::bounds::{days, millis, secs};
use crate::config::{BUILT_IN, DurationText};
use crate::ledger::SNOWFLAKE_LEASE_MAX;
use crate::redis::Flight;

section! {
    /// `node.*`
    Node {
        /// A process without a heartbeat for this long is silent: it is barred, and its outbox is
        /// taken over. Its heartbeats are a twelfth of that apart, 5 s at most.
        ttl: DurationText = DurationText(issuing().node_ttl), millis(100)..=secs(3_600);
        /// How far the clock of a process may be from the ledger's:
        /// [what follows](#clocks). Wider than the default only for one start.
        clock_offset_max: DurationText = DurationText(issuing().clock_offset_max),
            secs(1)..=days(3_650);
    }
}

section! {
    /// `series.*`
    Series {
        /// What a ledger without series gets when a process first opens it:
        /// [files, folders, or those of the program](#first-series).
        load: Vec<String> = vec![BUILT_IN.into()], "at most 100 entries";
    }
}

section! {
    /// `idempotency.*`
    Idempotency {
        /// How long a retry finds its number, at least. It belongs to the ledger: a process with a
        /// different value does not start while others are there ([the window](#the-window)).
        window: DurationText = DurationText(issuing().idempotency_window), secs(1)..=days(400);
        /// Idempotency records that Redis keeps for one partition, 80 to 100 bytes each; never
        /// fewer than ten times `journal.queue_max` ([sizing](#records-in-redis)).
        records_max: Option<u64> = None, RECORDS_MAX_MIN..=RECORDS_MAX_MAX,
            absent "none: 500 for each second of `idempotency.window`, 10000000 at least",
            like "" "20000000";
        /// Whether Redis keeps what was allocated for the whole window, so that a ledger restored
        /// from a backup gets every number of it again ([records](#records-in-redis)).
        keep_whole: bool = issuing().idempotency_keep_whole, "";
    }
}

/// Between the look into the journal for a key and its flight, no record of that time may go (F21).
const RECORDS_MAX_MIN: u64 = 100_000;
/// The highest bound that may be set.
pub(crate) const RECORDS_MAX_MAX: u64 = 1_000_000_000;

section! {
    /// `reservations.*`
    Reservations {
        /// For how long a number is [reserved](numbering.md#reservations) where the request does
        /// not say so; never longer than `reservations.ttl_max`.
        ttl: DurationText = DurationText(issuing().reservations.ttl), secs(1)..=days(30);
        /// The longest time that a request may ask for.
        ttl_max: DurationText = DurationText(issuing().reservations.ttl_max), secs(1)..=days(30);
        /// Live reservations of one series, as each process counts them every few seconds; more
        /// are refused with 503 `reservations-full`.
        live_max: u64 = issuing().reservations.live_max, 1..=1_000_000;
    }
}

section! {
    /// `allocator.*`
    Allocator {
        /// Requests that may wait for one partition; more are refused with 503.
        queue_max: usize = issuing().queue_max, 1..=1_000_000;
        /// Of them, requests of one caller; never more than `allocator.queue_max`. Callers take
        /// [turns](#turns-of-callers).
        caller_queue_max: usize = issuing().caller_queue_max, 1..=1_000_000;
        /// Requests in one call of Redis, or in one transaction of the database path.
        flight_max: usize = issuing().flight_max, 1..=Flight::REQUESTS_MAX;
        /// Longest time that a process that is asked to stop takes after its last request, even if
        /// a store is silent: half of it for the workers, then the journal, a tenth for leaving.
        stop_max: DurationText = DurationText(issuing().stop_max), millis(100)..=secs(3_600);
    }
}

section! {
    /// `snowflake.*`
    Snowflake {
        /// How far ahead a process leases the time of its `{SNOWFLAKE}` ids; it goes on for at
        /// least half of that while the ledger is away.
        lease: DurationText = DurationText(issuing().snowflake.lease),
            millis(100)..=DurationText(SNOWFLAKE_LEASE_MAX);
    }
}

section! {
    /// `ceiling.*`
    Ceiling {
        /// Smallest headroom, in numbers, that a raise leaves above a counter: roughly the gap of a
        /// quiet counter when Redis is lost.
        step_min: u64 = issuing().ceiling_step_min, 1..=1_000_000;
        /// How long a raise should last at the counter's present rate: roughly the gap of a busy
        /// counter ([when a ceiling goes](#ceilings-that-go)).
        horizon: DurationText = DurationText(issuing().ceiling_horizon),
            millis(100)..=secs(3_600);
    }
}

section! {
    /// `recovery.*`
    Recovery {
        /// Longest wait for the acknowledgements of the other processes before an epoch closes;
        /// five times that for what the leading process handed out itself.
        barrier_max: DurationText = DurationText(issuing().recovery_barrier_max),
            millis(10)..=secs(60);
        /// With more recoveries than this in a minute, a partition goes to the database.
        per_minute_max: u64 = issuing().recovery_per_minute_max, 1..=100;
    }
}

section! {
    /// `sweep.*`
    Sweep {
        /// How long what ended stays: counters of closed epochs in Redis, participations and nodes
        /// in the ledger ([how long is enough](#how-long-is-enough)).
        keep: DurationText = DurationText(issuing().sweep.keep), secs(1)..=days(3_650);
        /// A partition with more counters in Redis ends its epoch by plan, exact: then those may
        /// go. Each counter that is still in use is seeded anew once.
        counters_max: u64 = issuing().sweep.counters_max, 1..=1_000_000_000;
    }
}

section! {
    /// `journal.*`
    Journal {
        /// Records that may wait for the journal while the ledger is away; then requests are
        /// refused with 503.
        queue_max: usize = issuing().journal.queue_max, 1..=10_000_000;
    }
}

section! {
    /// `retry.*`
    Retry {
        /// First wait before another try of a transaction that got no lock, or lost its connection;
        /// it doubles each time ([tries](#tries)).
        delay: DurationText = DurationText(issuing().retry_delay), millis(1)..=secs(60);
    }
}
