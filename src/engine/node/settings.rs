//! Every bound and wait of issuing: settings with their defaults, and what is no setting.

use std::time::Duration;

use crate::engine::journal::JournalSettings;

/// When no script has succeeded for so long, the database takes over: as long as a command may wait
/// for its reply by default.
pub const FALLBACK_AFTER: Duration = Duration::from_secs(1);

/// Time between two probes of Redis, per partition.
pub const PROBE_PERIOD: Duration = Duration::from_millis(250);

/// An `opening` older than this is given up (F6): it is one transaction and one script.
pub const RECOVERY_OPEN_TIMEOUT: Duration = Duration::from_secs(1);

/// First wait after a failed call to Redis or the ledger; it doubles each time.
pub const BACKOFF_MIN: Duration = Duration::from_millis(10);

/// Longest such wait: a store that is back is used again within half a second.
pub const BACKOFF_MAX: Duration = Duration::from_millis(500);

/// Heartbeats in a `node.ttl`; with fewer than four a slow one makes a live node look silent.
const TTL_HEARTBEATS: u32 = 12;

/// Longest time between two heartbeats: they also show that the ledger is there.
const HEARTBEAT_MAX: Duration = Duration::from_secs(5);

/// Flights of unknown outcome that could be waited for, one after the other, within
/// `recovery.barrier_max`.
const BARRIER_SETTLEMENTS: u32 = 10;

/// Bounds and waits of allocator, journal and reconciler.
#[derive(Clone, Debug)]
pub struct ProcessSettings {
    /// `allocator.queue_max`: requests that may wait for one partition.
    pub queue_max: usize,
    /// `allocator.caller_queue_max`: of them, requests of one caller.
    pub caller_queue_max: usize,
    /// `allocator.flight_max`: requests in one flight or database transaction.
    pub flight_max: usize,
    /// `ceiling.step_min`: smallest headroom that a raise leaves, in numbers.
    pub ceiling_step_min: u64,
    /// `ceiling.horizon`: how much traffic a raise should last for.
    pub ceiling_horizon: Duration,
    /// `recovery.per_minute_max`: more recoveries of a partition in a minute give it to the
    /// database (F6).
    pub recovery_per_minute_max: u64,
    /// `recovery.barrier_max`: longest wait for journal and nodes before an epoch closes (F14).
    pub recovery_barrier_max: Duration,
    /// `redis.return_after`: when all nodes have seen Redis healthy for so long, it takes over.
    pub return_after: Duration,
    /// `node.ttl`: a node without a new heartbeat for this long is silent (F18).
    pub node_ttl: Duration,
    /// `node.clock_offset_max`: how far the process's clock may be from the ledger's word (F37).
    pub clock_offset_max: Duration,
    /// `idempotency.window`: how long a retry finds its number.
    pub idempotency_window: Duration,
    /// `idempotency.records_max`: idempotency records that Redis keeps for one partition (F21).
    pub idempotency_records_max: u64,
    /// `idempotency.keep_whole`: whether Redis keeps what was allocated for the whole window, or
    /// until it is journaled (F9).
    pub idempotency_keep_whole: bool,
    /// Bounds of the journal.
    pub journal: JournalSettings,
    /// `retry.delay`: first wait before another try of a transaction of the database path that got
    /// no lock, or lost the ledger; it doubles each time.
    pub retry_delay: Duration,
    /// `allocator.stop_max`: longest time from the end of the last request to that of the process.
    pub stop_max: Duration,
    /// Ids of `{SNOWFLAKE}`.
    pub snowflake: SnowflakeSettings,
    /// Removing what no question needs any more.
    pub sweep: SweepSettings,
    /// Bounds of reservations.
    pub reservations: ReservationSettings,
    /// `http.time_limit`: longest time a request may take.
    pub time_limit: Duration,
}

impl ProcessSettings {
    /// Time between two heartbeats: a twelfth of `node.ttl`, 5 s at most.
    #[must_use]
    pub fn node_heartbeat(&self) -> Duration {
        (self.node_ttl / TTL_HEARTBEATS).min(HEARTBEAT_MAX)
    }

    /// Longest wait to learn what became of a flight of unknown outcome when its epoch ends (F17):
    /// a tenth of `recovery.barrier_max`.
    #[must_use]
    pub fn recovery_settle_max(&self) -> Duration {
        self.recovery_barrier_max / BARRIER_SETTLEMENTS
    }

    /// `idempotency.window` in milliseconds.
    #[must_use]
    pub fn idempotency_window_ms(&self) -> u64 {
        u64::try_from(self.idempotency_window.as_millis()).unwrap_or(u64::MAX)
    }
}

impl Default for ProcessSettings {
    fn default() -> Self {
        ProcessSettings {
            queue_max: 10_000,
            caller_queue_max: 7_500,
            flight_max: 256,
            ceiling_step_min: 10,
            ceiling_horizon: Duration::from_secs(30),
            recovery_per_minute_max: 3,
            recovery_barrier_max: Duration::from_secs(2),
            return_after: Duration::from_secs(10),
            node_ttl: Duration::from_secs(3),
            clock_offset_max: Duration::from_secs(30 * 60),
            idempotency_window: Duration::from_secs(24 * 60 * 60),
            idempotency_records_max: 43_200_000,
            idempotency_keep_whole: false,
            journal: JournalSettings::default(),
            retry_delay: Duration::from_secs(1),
            stop_max: Duration::from_secs(30),
            snowflake: SnowflakeSettings::default(),
            sweep: SweepSettings::default(),
            reservations: ReservationSettings::default(),
            time_limit: Duration::from_secs(40),
        }
    }
}

/// Bounds and waits of drawing ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SnowflakeSettings {
    /// `snowflake.lease`: how far a lease reaches beyond this process's clock; at most
    /// [`SNOWFLAKE_LEASE_MAX`](crate::ledger::SNOWFLAKE_LEASE_MAX).
    pub lease: Duration,
}

impl Default for SnowflakeSettings {
    fn default() -> Self {
        SnowflakeSettings { lease: Duration::from_secs(30) }
    }
}

/// Bounds and waits of the sweep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SweepSettings {
    /// Time between two rounds.
    pub period: Duration,
    /// How long what ended stays: `sweep.keep`, unless something else needs it for longer.
    pub keep: Duration,
    /// `sweep.counters_max`: an epoch with more counters in Redis is ended by plan,
    pub counters_max: u64,
    /// if it has lasted so long.
    pub epoch_min: Duration,
}

/// Rounds within `sweep.keep`: what has ended is removed soon after its time.
const KEEP_ROUNDS: u32 = 720;
/// Shortest and longest time between two rounds.
const ROUND_PERIODS: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(3_600));
/// Epochs that may end by plan within `sweep.keep`: each seeds the counters in use anew.
const KEEP_EPOCHS: u32 = 30;

/// Bounds of reservations.
#[derive(Clone, Copy, Debug)]
pub struct ReservationSettings {
    /// `reservations.ttl`: for how long a number is reserved where the caller does not say so.
    pub ttl: Duration,
    /// `reservations.ttl_max`: the longest time that a caller may ask for.
    pub ttl_max: Duration,
    /// `reservations.live_max`: live reservations of one series.
    pub live_max: u64,
}

impl Default for ReservationSettings {
    fn default() -> Self {
        ReservationSettings {
            ttl: Duration::from_secs(5 * 60),
            ttl_max: Duration::from_secs(24 * 60 * 60),
            live_max: 10_000,
        }
    }
}

impl SweepSettings {
    /// A sweep that keeps what ended for `keep`: a round at each 720th of it (1 s to 1 h), and at
    /// most one planned end of an epoch at each 30th.
    #[must_use]
    pub fn keeping(keep: Duration, counters_max: u64) -> Self {
        let (shortest, longest) = ROUND_PERIODS;
        let period = (keep / KEEP_ROUNDS).clamp(shortest, longest);
        let epoch_min = (keep / KEEP_EPOCHS).max(shortest);
        SweepSettings { period, keep, counters_max, epoch_min }
    }
}

impl Default for SweepSettings {
    fn default() -> Self {
        const DAY: Duration = Duration::from_secs(24 * 60 * 60);
        SweepSettings::keeping(DAY * 30, 1_000_000)
    }
}
