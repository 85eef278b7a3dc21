//! `numerator` hands out document numbers: formatted, audited, and never the same one twice.
//!
//! The rooms, from the bottom up (dependencies point only upwards in this list):
//!
//! - The crates: [`numbering`] is the numbering language, pure; [`clock`], [`node`], [`task`],
//!   [`backoff`], [`metrics`] come from `numerator-runtime`; [`redis`] and [`ledger`] do not know
//!   each other.
//! - [`auth`] identifies callers and knows their rights.
//! - [`engine`] takes numbers and remembers them.
//! - [`telemetry`] is what the process reports about itself.
//! - [`config`] reads the settings, [`startup`] builds the whole from them.
//! - [`web`] is shared by every route, [`terminal`] by every command.
//! - [`features`] have a folder each: logic, routes, commands.
//! - [`routes`] and [`commands`] list them all.

pub mod auth;
pub mod commands;
pub mod engine;
pub mod features;
pub mod routes;
pub mod startup;
pub mod telemetry;
pub mod terminal;
pub mod web;
pub use numerator_ledger as ledger;
pub use numerator_redis as redis;
pub use numerator_runtime::{backoff, clock, metrics, node, refusals, task};

pub mod config;
pub mod language;

#[cfg(test)]
use numbering::{Form, Misfit, Notation, form_of, json_of_toml, read_written};
#[cfg(test)]
#[path = "../crates/numbering/src/written/shape.rs"]
mod shape;

/// Short-lived texts of requests are adjacent in memory to records that live for a minute: the
/// system's allocator spends a third of the service's time on merging such free places. Applies to
/// every program with this library, including the load generator. It requests no huge pages: they
/// made nothing faster, and an idle service half as large again. A kernel that provides them
/// unrequested still does.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;
