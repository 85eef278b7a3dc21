//! Numbers for documents: one, many, a preview, another label.

pub mod answer;
pub(crate) mod batches;
pub(crate) mod generate;
pub(crate) mod inputs;
pub(crate) mod issuing;
pub mod next_command;
pub(crate) mod preview;
pub mod preview_command;
pub(crate) mod replacing;
pub mod request;
pub mod texts;
