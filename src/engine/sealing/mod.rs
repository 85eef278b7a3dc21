//! The record under seal: the key that signs, the content of a checkpoint, and the loop that makes
//! one after the other. Changes nothing in the record but that it adds checkpoints; decides nothing
//! about numbers.

pub(crate) mod checkpoint;
mod key;
mod making;
mod settings;

pub use checkpoint::{CheckpointError, Line, Sealing};
pub(crate) use key::read_hexadecimal;
pub use key::{AuditKey, KeyError, PublicKey};
pub(crate) use making::make_checkpoints;
pub use making::{Made, make};
pub use settings::{AuditSettings, Keyless};
