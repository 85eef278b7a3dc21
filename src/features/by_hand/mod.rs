//! Numbers that people gave by hand, registered with their documents.

pub(crate) mod answer;
pub mod command;
mod error;
pub(crate) mod registering;
pub(crate) mod routes;
