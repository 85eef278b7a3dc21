//! The record under seal: checkpoints that bind what the ledger holds and are signed with a key
//! that it never sees, and the comparison of all of it with them. Changes nothing in the record but
//! that it adds checkpoints; decides nothing about numbers.

mod checkpoint;
mod kept;
mod key;
mod leftovers;
mod making;
mod report;
mod seals;
mod segments;
mod verifying;

pub use checkpoint::{CheckpointError, Line, Sealing};
pub use kept::Kept;
pub(crate) use key::read_hexadecimal;
pub use key::{AuditKey, KeyError, PublicKey};
pub(crate) use making::make_checkpoints;
pub use making::{Made, make};
pub use report::{AuditReport, Finding, Place};
pub use verifying::{Trust, verify};
