//! The protocol as a model: nodes, Redis servers, the ledger, messages, faults. A search visits
//! every order of events within stated bounds and judges each state.
//!
//! Pure: it shares no code with the service and never touches a server, a clock or chance. Two
//! counters of one partition; values, epochs and flights are small whole numbers. A paused node is
//! one that takes no step for a while, which the search covers without an event of its own.

#![forbid(unsafe_code)]

mod choices;
pub mod data;
mod dust;
mod faults;
pub mod ledger;
pub mod message;
pub mod properties;
pub mod protocol;
mod recovery;
pub mod rules;
pub mod scenario;
pub mod search;
pub mod server;
pub mod state;
mod worker;
