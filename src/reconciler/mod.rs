//! Puts things right: recovery of a partition, adoption of dead nodes' outboxes, verification.
//!
//! ```text
//!            bump (compare-and-set)          claim (compare-and-set)       opened
//!   open E ─────────────────────▶ recovering E+1 ─────────────▶ opening E+1 ──────▶ open E+1
//!                                      │ barrier: what this node     │ `open` is sent once;
//!                                      │ handed out is committed     │ unknown: on to E+2
//!                                      ╰── owner database ───────────────────────▶ open E+1
//! ```
//!
//! Every step is a compare-and-set in the ledger, so any node may take the next one when the leader
//! is gone. Never decides by a time of day, and never takes silence for an acknowledgement.

mod adoption;
mod recovery;
mod verify;

pub use adoption::Reconciler;
pub use recovery::{Recovered, Trouble, recover};
pub use verify::{VerifyReport, verify};
