//! The one integration binary: real servers, started by the harness and killed at its end.
#![allow(missing_docs, clippy::unwrap_used, reason = "tests say what they do in their names")]

mod api;
mod commands;
mod configs;
mod deploy;
mod deployment;
mod documents;
mod faults;
mod gauges;
mod hazards;
mod imports;
mod language;
mod ledger_contract;
mod links;
mod load;
mod logs;
mod lookups;
mod lua_scripts;
mod machine;
mod nodes;
mod operations;
mod pages;
mod policies;
mod prometheus;
mod redis_client;
mod redis_faults;
mod reference_data;
mod reference_numbers;
mod remembered;
mod restored;
mod retries;
mod runbook;
mod serials;
mod series_files;
mod shapes;
mod snowflakes;
mod stage;
mod standby;
mod stopping;
#[cfg(feature = "otlp")]
mod traces;
mod vanished;
mod vectors;
