//! The comparison of the ledger's content with the checkpoints that bind it. Changes nothing.

pub mod command;
mod kept;
mod leftovers;
mod report;
mod seals;
mod segments;
mod verifying;

pub use kept::Kept;
pub use report::{AuditReport, Finding, Place};
pub use verifying::{Trust, verify};
