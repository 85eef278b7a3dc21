//! `numerator` hands out document numbers: formatted, audited, and never the same one twice.
//!
//! The rooms, from the bottom up (dependencies point only upwards in this list):
//!
//! - [`number`] is the numbering language: pure, no I/O.
//! - [`counter`] is Redis, [`ledger`] is SQL; they do not know each other.
//! - [`allocator`] takes numbers.
//! - [`reconciler`] verifies that none is missing or came twice.
//! - [`http`] and [`cli`] are the doors; [`metrics`] counts what passes.

pub mod allocator;
pub mod cli;
pub mod clock;
pub mod config;
pub mod counter;
pub mod http;
pub mod ledger;
pub mod metrics;
pub mod node;
pub mod number;
pub mod reconciler;
pub mod service;
