//! The register of numbers: look-ups, lists, exports, counters and gaps.

pub(crate) mod cells;
pub mod counters;
pub mod counters_command;
pub(crate) mod documents;
pub mod export_command;
pub mod find_command;
pub(crate) mod gap_explanation;
pub mod gaps_command;
pub mod lookups;
pub mod pages;
pub mod parse_command;
pub mod query;
pub mod revise_command;
pub mod revision;
pub mod revisions;
pub mod routes;
pub(crate) mod rows;
pub(crate) mod whole;
