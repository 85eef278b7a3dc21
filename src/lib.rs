//! `numerator` hands out document numbers: formatted, audited, and never the same one twice.
//!
//! The rooms, from the bottom up (dependencies point only upwards in this list):
//!
//! - The crates: [`numbering`] is the numbering language, pure; [`clock`], [`node`], [`task`],
//!   [`backoff`], [`metrics`] come from `numerator-runtime`; [`redis`] and [`ledger`] do not know
//!   each other.
//! - [`auth`] is who asks and what it may do.
//! - [`engine`] takes numbers and remembers them.
//! - [`telemetry`] is what the process says of itself.
//! - [`config`] reads the settings, [`startup`] builds the whole from them.
//! - [`web`] is what every route shares, [`terminal`] what every command shares.
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

/// Short-lived texts of requests and records that live for a minute lie side by side: the system's
/// allocator spends a third of the service's time on putting such free places together again. For
/// every program that is made of this library, the load generator included. It asks for no huge
/// pages: they made nothing faster, and an idle service half as large again. A kernel that gives
/// them unasked still does.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;
