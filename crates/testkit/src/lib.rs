//! Real servers on free ports in temporary folders, and the callers that load them. Tests and
//! drills share it; the program itself never depends on it.
//!
//! Never relies on a server that was running before; never ends a process it did not start.
//! A server that does not start ends the test: everything here panics rather than go on without.
#![allow(clippy::unwrap_used, reason = "a test without its servers has nothing to say")]

pub mod cluster;
pub mod eventually;
pub mod forge;
mod http;
pub mod load;
pub mod postgres;
pub mod process;
pub mod prometheus;
pub mod proxy;
pub mod redis;
pub mod sentinel;
pub mod service;

pub use http::{client, client_builder, get};
