//! Series: saved, shown, compared, explained.

pub mod answer;
pub(crate) mod changes;
pub mod check_command;
pub(crate) mod collisions;
pub mod command;
pub(crate) mod diff;
pub mod effect;
pub mod explain_command;
pub mod expression_command;
pub mod history_command;
pub(crate) mod periods;
pub mod request;
pub mod routes;
pub(crate) mod saving;
pub(crate) mod series_file;
