//! The one integration binary: real servers, started by the harness and killed at its end.
#![allow(missing_docs, clippy::unwrap_used, reason = "tests say what they do in their names")]

mod api;
mod commands;
mod faults;
mod harness;
mod ledger_contract;
mod load;
mod lua_scripts;
mod policies;
mod redis_client;
mod reference_numbers;
mod retries;
mod vanished;
