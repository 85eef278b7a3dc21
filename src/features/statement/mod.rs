//! The auditor's paper: the outcome of every number of a series in a period, in plain words of the
//! reader's language, with the proof. Reads the ledger and takes nothing; the registers that
//! operators read keep their own words.
//!
//! ```text
//!   counters ─▶ accounts (one moment of the ledger) ─▶ Statement ─▶ text │ CSV │ JSON │ a page
//!                        newest checkpoint ───────────────╯
//! ```

pub mod command;
mod drawing;
mod explanations;
mod page;
mod paper;
mod partly;
mod period;
mod phrases;
pub mod question;
pub mod routes;
mod sealing;
mod separated;
mod text;

pub(crate) use drawing::{Asked, Bounds, Undrawn, draw_up};
pub use paper::{
    CountLine, EndAnswer, EntryAnswer, PartAnswer, RunAnswer, RunStatement, SealAnswer, Statement,
    Verdict,
};
pub(crate) use period::AskedPeriod;
