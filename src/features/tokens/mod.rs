//! Bearer tokens: made, listed, revoked, rotated.

pub mod command;
pub mod routes;
