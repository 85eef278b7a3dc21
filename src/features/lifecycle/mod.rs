//! What becomes of a number once it is issued: void, replaced, corrected.

pub(crate) mod act_rows;
pub(crate) mod answer;
pub mod correct_command;
pub(crate) mod correcting;
pub(crate) mod error;
pub(crate) mod issuer;
pub(crate) mod naming;
pub(crate) mod replacing;
pub(crate) mod reserved;
pub mod routes;
pub(crate) mod standing;
pub mod table;
pub(crate) mod unused;
pub mod void_command;
pub(crate) mod voiding;
