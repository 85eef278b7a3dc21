//! Moving in: what other systems have issued, read from their lists and tables and set beside the
//! series here (R9.5).
//!
//! ```text
//!   list, CSV file ──▶ rows ──▶ reading: series, inputs, values ─┐
//!                                                                ├─▶ tally by counter ──▶ plan
//!   tables, dump ────▶ records ─▶ counters: series, key, value ──┤      report, or apply
//!   another ledger ──▶ records ─▶ ledger: series, key, value ────┘
//! ```
//!
//! Never guesses: what can be read in two ways, or not at all, is a problem, and a plan with
//! problems is not applied. Never writes but through [`crate::ledger::Imports::add`], all or
//! nothing. Memory is bounded: one chunk of rows, the listed part of the report, and the runs of
//! values of each counter.

mod apply;
mod codes;
pub mod command;
mod counters;
mod dating;
mod error;
mod exported;
mod formats;
mod ledger;
mod list_file;
mod metered;
mod numbers;
mod reading;
mod report;
mod rows;
mod runs;
mod separated;
mod tables;
mod tally;
mod twice;

pub use apply::{apply_counters, apply_numbers};
pub use codes::Codes;
pub use counters::plan_counters;
pub use error::ImportError;
pub use formats::{Formats, read_formats};
pub use ledger::{apply_ledger, plan_ledger};
pub use list_file::{ListFile, STANDARD_INPUT};
pub use numbers::plan_numbers;
pub use report::{CounterReport, Plan, Problem, ProblemKind, Report};
pub use separated::{Line, Separated, column_name, separator};

use crate::engine::allocator::Catalog;
use crate::ledger::SharedLedger;

/// The context of an import.
#[derive(Clone, Copy)]
pub struct Import<'a> {
    /// The ledger that is moved into.
    pub ledger: &'a SharedLedger,
    /// Its active series.
    pub catalog: &'a Catalog,
    /// The data that the source does not have.
    pub choice: &'a Choice,
    /// Present time: it applies where the source has none.
    pub now: jiff::Timestamp,
    /// Called with the bytes of the source that are read so far.
    pub progress: &'a (dyn Fn(u64) + Sync),
}

/// The data that the rows of a source lack, the same for all of them.
#[derive(Clone, Debug, Default)]
pub struct Choice {
    /// Code of the series that the numbers belong to.
    pub series: Option<String>,
    /// Their document type.
    pub type_code: Option<String>,
    /// Their project.
    pub project: Option<String>,
    /// The user on record for a number whose row names none.
    pub user_id: String,
    /// Whether numbers are added to periods that are closed.
    pub into_closed: bool,
}
