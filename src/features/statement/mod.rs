//! The auditor's paper: the outcome of every number of a series in a period, in plain words of the
//! reader's language, with the proof. Reads the ledger and takes nothing; the registers that
//! operators read keep their own words.
//!
//! ```text
//!   counters ─▶ accounts (one moment of the ledger) ─▶ Statement ─▶ text │ CSV │ JSON │ a page
//!                        newest checkpoint ───────────────╯
//! ```

mod bounds;
mod by_hand;
pub mod command;
mod explanations;
mod labels;
mod messages;
mod page;
mod paper;
mod partly;
mod period;
pub mod question;
mod report_builder;
pub mod routes;
mod sealing;
mod separated;
mod text;
mod voids;

pub(crate) use bounds::{Bounds, Undrawn};
pub(crate) use labels::Labels;
pub use paper::{
    CountLine, EndAnswer, EntryAnswer, PartAnswer, RunAnswer, RunStatement, SealAnswer, Statement,
    Verdict,
};
pub(crate) use period::AskedPeriod;
pub(crate) use report_builder::{Asked, draw_up};
