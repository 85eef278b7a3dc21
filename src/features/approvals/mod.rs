//! Changes that two people answer for: requested by one, approved by another.

mod bounds;
pub mod command;
pub mod making;
pub mod routes;
