//! A ledger's own safety: which commits it may lose, and, where it has lost some, what is known of
//! them.

use std::fmt;

/// A setting or state of the database that makes losing its last commits likelier.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum LedgerHazard {
    /// Standbys follow that no commit waits for.
    AsynchronousStandby {
        /// How many.
        standbys: i64,
    },
    /// Commits are confirmed before they are on disk, or before the standbys that they should wait
    /// for have them.
    LazyCommit {
        /// `synchronous_commit` of a session of the program, or SQLite's `synchronous`.
        setting: String,
    },
    /// `fsync off`.
    NoFsync,
    /// `full_page_writes off`.
    NoFullPageWrites,
}

impl LedgerHazard {
    /// The names of all of them.
    pub const NAMES: [&str; 4] =
        ["asynchronous-standby", "lazy-commit", "no-fsync", "no-full-page-writes"];

    /// Its name in answers and metrics.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            LedgerHazard::AsynchronousStandby { .. } => Self::NAMES[0],
            LedgerHazard::LazyCommit { .. } => Self::NAMES[1],
            LedgerHazard::NoFsync => Self::NAMES[2],
            LedgerHazard::NoFullPageWrites => Self::NAMES[3],
        }
    }

    /// The remedy.
    #[must_use]
    pub fn cure(&self) -> &'static str {
        match self {
            LedgerHazard::AsynchronousStandby { .. } => {
                "name those that may be promoted in synchronous_standby_names, and never promote \
                 another"
            }
            LedgerHazard::LazyCommit { .. } => "set synchronous_commit = on",
            LedgerHazard::NoFsync => "set fsync = on",
            LedgerHazard::NoFullPageWrites => {
                "set full_page_writes = on, unless the file system writes each page whole or not \
                 at all"
            }
        }
    }
}

/// The hazard and its possible consequences.
impl fmt::Display for LedgerHazard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LedgerHazard::AsynchronousStandby { standbys } => write!(
                f,
                "{standbys} standbys for which no commit waits: one that is promoted lacks the \
                 last commits, and the ledger is held"
            ),
            LedgerHazard::LazyCommit { setting } => write!(
                f,
                "synchronous_commit is {setting}: a commit that was confirmed may be lost by a \
                 crash or a fail-over"
            ),
            LedgerHazard::NoFsync => {
                f.write_str("fsync is off: a machine that fails may lose any commit")
            }
            LedgerHazard::NoFullPageWrites => f.write_str(
                "full_page_writes is off: a machine that fails may leave half a page, and nobody \
                 notices before it is read",
            ),
        }
    }
}

/// The database's answers about how it keeps commits.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LedgerCheckup {
    /// The hazards.
    pub hazards: Vec<LedgerHazard>,
    /// What could not be checked, and why.
    pub unchecked: Vec<String>,
}
