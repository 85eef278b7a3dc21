//! Bearer tokens: made, listed, revoked, rotated.

pub mod answer;
pub mod command;
pub mod order;
pub mod routes;
