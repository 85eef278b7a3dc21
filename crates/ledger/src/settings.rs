//! The settings of a deployment for its ledger: connections and waits. The URL is not among them.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::seal::MacKey;

/// The process that brings the schema of a ledger up to date. An empty ledger is always set up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Migrate {
    /// Any process that opens it.
    #[default]
    Auto,
    /// Only `numerator migrate`: other processes are refused where the schema is older.
    Explicit,
}

/// Shortest limit of a call: its statements may each wait for a lock.
const CALL_LIMIT_MIN: Duration = Duration::from_secs(10);

/// Bounds of a ledger's connections and waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LedgerSettings {
    /// `database.connections_max`: connections that calls share. PostgreSQL gets three
    /// more: heartbeat, watch and journal have one each (F31, F47).
    pub connections_max: u32,
    /// `database.lock_timeout`: longest wait for one lock.
    pub lock_timeout: Duration,
    /// A call without an answer for so long is given up, and with it the connections of its time:
    /// [`call_limit_for`](LedgerSettings::call_limit_for). PostgreSQL only: there is no network
    /// before a file.
    pub call_limit: Duration,
    /// `database.migrate`: the treatment of a schema that is older than this program.
    pub migrate: Migrate,
    /// How long a migration waits for a lock in one try. Later statements wait as long behind it.
    /// PostgreSQL only.
    pub migrate_lock_timeout: Duration,
    /// Tries of all migrations, a second apart. PostgreSQL only.
    pub migrate_attempts: u32,
    /// From `audit.key`: proves that a journal batch is of a process that has it.
    pub mac_key: Option<MacKey>,
}

impl LedgerSettings {
    /// The longest call where a statement waits so long for its lock: half as long again, so
    /// that one that gets it at the last moment has time for its work; ten seconds at least.
    #[must_use]
    pub fn call_limit_for(lock_timeout: Duration) -> Duration {
        (lock_timeout + lock_timeout / 2).max(CALL_LIMIT_MIN)
    }

    /// How many connections may be held at the same time by seeds and raises, which wait for locks:
    /// three eighths of them.
    #[must_use]
    pub fn seeds_max(&self) -> usize {
        self.eighths(3)
    }

    /// How many by questions to the journal, which wait for takes under their keys: a quarter.
    #[must_use]
    pub fn questions_max(&self) -> usize {
        self.eighths(2)
    }

    /// How many by transactions that wait for contended counters of the database path: a quarter.
    #[must_use]
    pub fn lock_waiters_max(&self) -> usize {
        self.eighths(2)
    }

    /// How many by searches on behalf of callers, in the register and its archives: a quarter.
    #[must_use]
    pub fn searches_max(&self) -> usize {
        self.eighths(2)
    }

    /// How many by callers' look-ups by an index: a quarter. With searches they hold half of the
    /// connections, and takes always find one.
    #[must_use]
    pub fn reads_max(&self) -> usize {
        self.eighths(2)
    }

    /// How many by callers' records that are no numbers, such as steps and revisions: three
    /// eighths.
    #[must_use]
    pub fn notes_max(&self) -> usize {
        self.eighths(3)
    }

    /// So many eighths, at least one connection.
    fn eighths(&self, count: usize) -> usize {
        (self.connections_max as usize * count / 8).max(1)
    }
}

impl Default for LedgerSettings {
    fn default() -> Self {
        LedgerSettings {
            connections_max: 8,
            lock_timeout: Duration::from_secs(10),
            call_limit: Duration::from_secs(15),
            migrate: Migrate::default(),
            migrate_lock_timeout: Duration::from_millis(500),
            migrate_attempts: 60,
            mac_key: None,
        }
    }
}
