//! A document on one number of a range: once for each number.

pub(crate) mod answer;
pub(crate) mod assigning;
pub mod command;
pub(crate) mod error;
pub mod routes;
