//! A ledger's own safety: which commits it may lose, and, where it has lost some, what is known of
//! them.

use std::fmt;

/// A setting or state of the database that makes losing its last commits likelier.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum LedgerConfigWarning {
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

impl LedgerConfigWarning {
    /// The names of all of them.
    pub const NAMES: [&str; 4] =
        ["asynchronous-standby", "lazy-commit", "no-fsync", "no-full-page-writes"];

    /// Its name in answers and metrics.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            LedgerConfigWarning::AsynchronousStandby { .. } => Self::NAMES[0],
            LedgerConfigWarning::LazyCommit { .. } => Self::NAMES[1],
            LedgerConfigWarning::NoFsync => Self::NAMES[2],
            LedgerConfigWarning::NoFullPageWrites => Self::NAMES[3],
        }
    }

    /// The remedy.
    #[must_use]
    pub fn cure(&self) -> &'static str {
        match self {
            LedgerConfigWarning::AsynchronousStandby { .. } => {
                "name those that may be promoted in synchronous_standby_names, and never promote \
                 another"
            }
            LedgerConfigWarning::LazyCommit { .. } => "set synchronous_commit = on",
            LedgerConfigWarning::NoFsync => "set fsync = on",
            LedgerConfigWarning::NoFullPageWrites => {
                "set full_page_writes = on, unless the file system writes each page whole or not \
                 at all"
            }
        }
    }
}

/// The hazard and its possible consequences.
impl fmt::Display for LedgerConfigWarning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LedgerConfigWarning::AsynchronousStandby { standbys } => write!(
                f,
                "{standbys} standbys for which no commit waits: one that is promoted lacks the \
                 last commits, and the ledger is held"
            ),
            LedgerConfigWarning::LazyCommit { setting } => write!(
                f,
                "synchronous_commit is {setting}: a commit that was confirmed may be lost by a \
                 crash or a fail-over"
            ),
            LedgerConfigWarning::NoFsync => {
                f.write_str("fsync is off: a machine that fails may lose any commit")
            }
            LedgerConfigWarning::NoFullPageWrites => f.write_str(
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
    pub config_warnings: Vec<LedgerConfigWarning>,
    /// What could not be checked, and why.
    pub unchecked: Vec<String>,
}
