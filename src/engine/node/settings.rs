//! Every bound and wait of issuing, with its unit and default.

use std::time::Duration;

use crate::engine::journal::JournalSettings;

/// Bounds and waits of allocator, journal and reconciler.
#[derive(Clone, Debug)]
pub struct ProcessSettings {
    /// `allocator.queue_max`: requests that may wait for one partition.
    pub queue_max: usize,
    /// `allocator.caller_queue_max`: of them, requests of one caller.
    pub caller_queue_max: usize,
    /// `allocator.flight_max`: requests in one flight or database transaction.
    pub flight_max: usize,
    /// `allocator.counters_max`: counters of one partition that a node remembers.
    pub counters_max: usize,
    /// `ceiling.step_min`: smallest headroom that a raise leaves, in numbers.
    pub ceiling_step_min: u64,
    /// `ceiling.horizon`: how much traffic a raise should last for.
    pub ceiling_horizon: Duration,
    /// `seed.grace`: how long a counter may be cold while another node seeds it (F12).
    pub seed_grace: Duration,
    /// `recovery.open_timeout`: an `opening` older than this is given up (F6).
    pub recovery_open_timeout: Duration,
    /// `recovery.per_minute_max`: more recoveries of a partition in a minute give it to the
    /// database (F6).
    pub recovery_per_minute_max: u64,
    /// `recovery.settle_max`: longest wait to learn what became of a flight of unknown outcome when
    /// its epoch ends (F17).
    pub recovery_settle_max: Duration,
    /// `recovery.barrier_max`: longest wait for journal and nodes before an epoch closes (F14).
    pub recovery_barrier_max: Duration,
    /// `redis.fallback_after`: when no script has succeeded for so long, the database takes over.
    pub fallback_after: Duration,
    /// `redis.return_after`: when all nodes have seen Redis healthy for so long, it takes over.
    pub return_after: Duration,
    /// `redis.probe_period`: time between two looks at Redis, per partition.
    pub probe_period: Duration,
    /// `node.heartbeat`: time between two heartbeats.
    pub node_heartbeat: Duration,
    /// `node.ttl`: a node whose heartbeat stands still this long is silent (F18).
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
    /// `retry.delay_min`: first wait after a failed call to Redis or the ledger; doubles each time.
    pub retry_delay_min: Duration,
    /// `retry.delay_max`: longest such wait.
    pub retry_delay_max: Duration,
    /// `retry.attempts_max`: further tries of a ledger call before its requests are refused.
    pub retry_attempts_max: u32,
    /// The same for transactions of the database path.
    pub database_retries: DatabaseRetries,
    /// `allocator.stop_max`: longest time from the end of the last request to that of the process.
    pub stop_max: Duration,
    /// Ids of `{SNOWFLAKE}`.
    pub snowflake: SnowflakeSettings,
    /// Removing what no question needs any more.
    pub sweep: SweepSettings,
    /// `http.time_limit`: longest time a request may take.
    pub time_limit: Duration,
}

impl ProcessSettings {
    /// `idempotency.window` in milliseconds.
    #[must_use]
    pub fn idempotency_window_ms(&self) -> u64 {
        u64::try_from(self.idempotency_window.as_millis()).unwrap_or(u64::MAX)
    }
}

/// Further tries of a transaction of the database path, and the first of the waits between them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DatabaseRetries {
    /// `retry.lock_attempts`: after a lock that was not granted (R6.2).
    pub lock_attempts: u32,
    /// `retry.lock_delay`: wait before the first of them; doubles each time.
    pub lock_delay: Duration,
    /// `retry.conflict_attempts`: after a deadlock or a serialisation failure (R6.3).
    pub conflict_attempts: u32,
    /// `retry.connection_attempts`: after the ledger was lost (R6.4).
    pub connection_attempts: u32,
    /// `retry.connection_delay`: wait before the first of them; doubles each time.
    pub connection_delay: Duration,
}

impl Default for DatabaseRetries {
    fn default() -> Self {
        DatabaseRetries {
            lock_attempts: 5,
            lock_delay: Duration::from_secs(1),
            conflict_attempts: 2,
            connection_attempts: 3,
            connection_delay: Duration::from_secs(1),
        }
    }
}

impl Default for ProcessSettings {
    fn default() -> Self {
        ProcessSettings {
            queue_max: 10_000,
            caller_queue_max: 7_500,
            flight_max: 256,
            counters_max: 250_000,
            ceiling_step_min: 10,
            ceiling_horizon: Duration::from_secs(30),
            seed_grace: Duration::from_secs(1),
            recovery_open_timeout: Duration::from_secs(1),
            recovery_per_minute_max: 3,
            recovery_settle_max: Duration::from_millis(200),
            recovery_barrier_max: Duration::from_secs(2),
            fallback_after: Duration::from_secs(1),
            return_after: Duration::from_secs(10),
            probe_period: Duration::from_millis(250),
            node_heartbeat: Duration::from_millis(250),
            node_ttl: Duration::from_secs(3),
            clock_offset_max: Duration::from_secs(30 * 60),
            idempotency_window: Duration::from_secs(24 * 60 * 60),
            idempotency_records_max: 43_200_000,
            idempotency_keep_whole: false,
            journal: JournalSettings::default(),
            retry_delay_min: Duration::from_millis(10),
            retry_delay_max: Duration::from_millis(500),
            retry_attempts_max: 5,
            database_retries: DatabaseRetries::default(),
            stop_max: Duration::from_secs(30),
            snowflake: SnowflakeSettings::default(),
            sweep: SweepSettings::default(),
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
    /// `snowflake.clock_wait_max`: longest wait for a clock that is behind the last id (R2.6).
    pub clock_wait_max: Duration,
}

impl Default for SnowflakeSettings {
    fn default() -> Self {
        SnowflakeSettings { lease: Duration::from_secs(30), clock_wait_max: Duration::from_secs(1) }
    }
}

/// Bounds and waits of the sweep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SweepSettings {
    /// `sweep.period`: time between two rounds.
    pub period: Duration,
    /// `sweep.keep`: how long what ended stays.
    pub keep: Duration,
    /// `sweep.counters_max`: an epoch with more counters in Redis is ended by plan,
    pub counters_max: u64,
    /// `sweep.epoch_min`: if it has lasted so long.
    pub epoch_min: Duration,
}

impl Default for SweepSettings {
    fn default() -> Self {
        const DAY: Duration = Duration::from_secs(24 * 60 * 60);
        SweepSettings {
            period: Duration::from_secs(60 * 60),
            keep: DAY * 30,
            counters_max: 1_000_000,
            epoch_min: DAY,
        }
    }
}
