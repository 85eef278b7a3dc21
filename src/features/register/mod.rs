//! The register of numbers: look-ups, lists, exports, counters and gaps.

pub(crate) mod cells;
pub mod counters;
pub mod counters_command;
pub(crate) mod documents;
pub mod export_command;
pub mod find_command;
pub(crate) mod gap_description;
pub(crate) mod gap_explanation;
pub(crate) mod gap_rows;
pub mod gaps_command;
pub(crate) mod kinds;
pub(crate) mod listing;
pub mod lookups;
pub mod pages;
pub mod parse_command;
pub(crate) mod periods;
pub mod query;
pub(crate) mod reserved;
pub mod revise_command;
pub mod revision;
pub mod revisions;
pub mod routes;
pub(crate) mod rows;
mod variables;
pub(crate) mod whole;
