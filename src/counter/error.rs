//! What is known when a call to Redis fails.

use thiserror::Error;

/// Why a script call failed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum CounterError {
    /// Connection lost, time-out, cancelled: the script may have run, may run later, or never. Fly
    /// the same bytes again.
    #[error("outcome unknown: {0}")]
    Unknown(String),
    /// Redis refused before the script ran (LOADING, READONLY, OOM, CLUSTERDOWN, …). Nothing was
    /// taken.
    #[error("not executed: {0}")]
    NotExecuted(String),
    /// An error reply that proves nothing: the script may have run half-way (F15). The epoch must
    /// end; nothing of the flight may be handed out.
    #[error("broken: {0}")]
    Broken(String),
    /// The reply is not one that the script gives, or is for another caller: replies may be out of
    /// step. The connection was closed; treat like `Broken`.
    #[error("garbled reply: {0}")]
    Garbled(String),
}
