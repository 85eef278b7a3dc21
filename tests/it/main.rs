//! The one integration binary: real servers, started by the harness and killed at its end.
#![allow(
    missing_docs,
    unreachable_pub,
    clippy::unwrap_used,
    reason = "tests say what they do in their names, and stand in one crate"
)]

mod harness;
mod ledger_contract;
