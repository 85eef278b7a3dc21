//! This process as a node: its identity, its stores and bounds, and what it knows of the ledger, of
//! Redis and of the other nodes.
//!
//! What partition workers and reconciler share, and neither owns. Takes no numbers and ends no
//! epoch; it notices that the ledger went back, and has it held (F9, F25).

mod clocks;
mod cluster_health;
mod context;
mod going_back;
mod heartbeat;
mod incidents;
mod isolation;
mod known_epochs;
mod last_seen_file;
mod ledger_availability;
mod live_reservations;
mod membership;
mod memory;
mod observation;
mod operator;
mod permits;
mod planned_ends;
mod quorum_check;
mod redis_health;
mod renewal;
mod replay;
mod settings;
mod unjournaled;

pub use clocks::{CLOCK_NOTICED_US, ClockError, ClockOff, Clocks};
pub use cluster_health::{ClusterHealth, LEFT_OUT_PERIODS, Other};
pub use context::{Context, FlightNumbers};
pub use incidents::Incidents;
pub use isolation::{CutOff, Isolation};
pub use last_seen_file::{LastSeenFile, hear_redis};
pub use ledger_availability::{LedgerAvailability, Use};
pub use live_reservations::LiveReservations;
pub use membership::{Membership, News};
pub use operator::{login, operator};
pub use permits::Permits;
pub(crate) use planned_ends::PlannedEnd;
pub use planned_ends::PlannedEnds;
pub use quorum_check::QuorumCheck;
pub use redis_health::RedisHealth;
pub use settings::{
    BACKOFF_MAX, BACKOFF_MIN, FALLBACK_AFTER, PROBE_PERIOD, ProcessSettings, RECOVERY_OPEN_TIMEOUT,
    ReservationSettings, SnowflakeSettings, SweepSettings,
};
pub use unjournaled::UnjournaledPartitions;
