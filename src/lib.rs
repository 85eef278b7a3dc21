//! `numerator` hands out document numbers: formatted, audited, and never the same one twice.
//!
//! The rooms, from the bottom up (dependencies point only upwards in this list):
//!
//! - [`numbering`], a crate of its own, is the numbering language: pure, no I/O.
//! - [`clock`], [`node`], [`task`], [`backoff`], [`metrics`], of the crate `numerator-base`: the
//!   time, the identity of a process, the form of its loops and waits, and what it counts.
//! - [`counter`] is Redis, [`ledger`] is SQL: crates that do not know each other.
//! - [`journal`] writes numbers down behind the answers, [`revision`] gives issued ones another
//!   label, [`language`] is what users and auditors are spoken to in, [`limits`] count how often
//!   somebody asks, [`external`] asks others.
//! - [`process`] is this process as a node: its identity, stores, bounds, and what it knows.
//! - [`reconciler`] puts things right after a fault.
//! - [`allocator`] takes numbers.
//! - [`archive`] moves old rows to files, [`gauges`] looks at them all, [`import`] reads what other
//!   systems have issued, on its way into the ledger, [`statement`] is the auditor's paper.
//! - [`config`] reads the settings and [`service`] builds the whole from them.
//! - [`http`] and [`cli`] are the doors.

pub use numerator_base::{backoff, clock, metrics, node, refusals, task};
pub use numerator_counter as counter;
pub use numerator_ledger as ledger;

pub mod access;
pub mod allocator;
pub mod archive;
pub mod audit;
pub mod cli;
pub mod config;
pub mod external;
pub mod gauges;
pub mod http;
pub mod import;
pub mod journal;
pub mod language;
pub mod limits;
pub mod log_lines;
pub mod process;
pub mod reconciler;
pub mod revision;
pub mod service;
pub mod statement;

#[cfg(test)]
use numbering::{Form, Misfit, Notation, form_of, json_of_toml, read_written};
#[cfg(test)]
#[path = "../numbering/src/written/shape.rs"]
mod shape;

/// Short-lived texts of requests and records that live for a minute lie side by side: the system's
/// allocator spends a third of the service's time on putting such free places together again. For
/// every program that is made of this library, the load generator included. It asks for no huge
/// pages: they made nothing faster, and an idle service half as large again. A kernel that gives
/// them unasked still does.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;
