//! Tables of ids and codes, and memberships.

pub(crate) mod changes;
pub mod command;
pub(crate) mod routes;
