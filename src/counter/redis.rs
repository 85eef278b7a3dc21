//! The connection: fred, set up so that a command is written once (LIBRARIES 1.5 of the design).

use std::time::Duration;

use super::CounterError;

/// How to reach Redis.
#[derive(Clone, Debug)]
pub struct RedisSettings {
    /// `redis://`, `rediss://`, `redis-sentinel://` or `redis-cluster://`.
    pub url: String,
    /// After this long without a reply a call's outcome is unknown.
    pub command_timeout: Duration,
    /// Longest wait between two attempts to connect.
    pub reconnect_max: Duration,
}

/// What a server says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Probe {
    /// Whether it is a master.
    pub is_master: bool,
    /// Its `master_replid`.
    pub incarnation: String,
}

/// A connection to the Redis that owns the fast path. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Redis {}

impl Redis {
    /// Starts the client; connects in the background and reconnects for ever. Does not fail because Redis is down.
    ///
    /// # Errors
    /// When the URL is not one.
    pub fn start(_settings: &RedisSettings) -> Result<Self, CounterError> {
        todo!()
    }

    /// Asks the server of a partition who it is (through a script, so that the answer comes from where
    /// the partition's keys live).
    ///
    /// # Errors
    /// See [`CounterError`].
    pub async fn probe(&self, _keys: &super::Keys, _partition: u32) -> Result<Probe, CounterError> {
        todo!()
    }

    /// Closes the connection.
    pub async fn stop(&self) {
        todo!()
    }
}
