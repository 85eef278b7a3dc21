//! Reservations: a document holds a number before it is final, and confirms it or gives it up.

pub(crate) mod acting;
pub(crate) mod answer;
mod bounds;
pub mod command;
pub mod hand_back_command;
pub(crate) mod handing_back;
pub mod listing;
pub(crate) mod routes;
