//! Puts things right: recovery of a partition, adoption of dead nodes' outboxes, verification; and
//! what an operator's commands look at and carry on.
//!
//! ```text
//!            bump (compare-and-set)          claim (compare-and-set)       opened
//!   open E ─────────────────────▶ recovering E+1 ─────────────▶ opening E+1 ──────▶ open E+1
//!                                      │ barrier: every node has     │ `open` is sent once;
//!                                      │ acknowledged or is adopted  │ unknown: on to E+2
//!                                      ╰── owner database ───────────────────────▶ open E+1
//! ```
//!
//! Every step is a compare-and-set in the ledger, so any node may take the next one when the leader
//! is gone. Never decides by a time of day, and never takes silence for an acknowledgement.

mod adopting;
mod backlog;
mod beats;
mod claims;
mod closed_epochs;
mod compare;
mod config_warnings;
mod duplicate;
mod heartbeats;
mod lending;
mod loans;
mod margin;
mod outbox;
mod owner;
mod recovery;
mod reservations;
mod restored;
mod standstill;
mod stores;
mod strays;
mod sweeping;
mod tall_ceilings;
mod texts;
mod underway;
mod verify;
mod watch;

pub use backlog::{Backlog, backlogs, oldest};
pub use beats::{Life, Observation, Observed, observe};
pub(crate) use closed_epochs::settle_behind;
pub use closed_epochs::{settle_counters, settle_slices};
pub use compare::{Deviation, DeviationKind, RedisReport};
pub(crate) use config_warnings::watch_config;
pub(crate) use lending::Loan;
pub use margin::Unbounded;
pub use recovery::{Plan, Recovered, RecoveryError, recover};
pub(crate) use reservations::{sweep_all, sweep_last, sweep_reservations};
pub use restored::{Restore, RestoreError, Restored, is_held};
pub use standstill::{Standstill, carry_on, hand_over, renew, stalled, stalls_after};
pub use stores::Stores;
pub(crate) use sweeping::sweep;
pub(crate) use tall_ceilings::{few_have_ended, watch_ceilings};
pub use texts::Misread;
pub use verify::{VerifyReport, verify, verify_from};
pub use watch::{Adoptions, Reconciler};
