//! Redis: the counters of the fast path.
//!
//! Owns every key and every script; the only room that uses the client library. A call made here is
//! written once and never cancelled; what is known of its outcome is in the type of its error.
//! Decides nothing: fences, cold counters and full ceilings are answers, not actions.

mod call;
mod config_warnings;
mod error;
mod flight;
mod flight_requests;
mod keys;
mod last_failure;
mod limits;
mod link;
mod masters;
mod record;
mod redis;
mod reply;
mod salvage;
mod scripts;
mod settle;
mod survey;
mod sweeping;
mod times;
mod topology;

pub use config_warnings::{Checkup, ConfigWarning};
pub use error::CounterError;
pub use flight::{
    Completion, Flight, Guard, IdempotencyLimits, IssueAnswer, IssueOutcome, IssueRequest, Raised,
    SeedPlace, SeedState, Take,
};
pub use keys::Keys;
pub use limits::LIMITS_MAX;
pub use record::PayloadMark;
pub use redis::{Probe, Redis, RedisSettings};
pub use salvage::{Frozen, HeldKey, Remembered, Revealed, SCAN_KEYS, Scanned};
pub use scripts::{Barred, OpenOutcome, Opening, OutboxEntry, OutboxPage, Trimmed};
pub use settle::Settled;
pub use survey::{Completeness, CounterState, Inspection, OwnerRecord, Survey};
pub use sweeping::SweptCounters;
pub use times::ServerTime;
pub use topology::unencrypted;
