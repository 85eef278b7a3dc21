//! What every command shares: its settings, its session, what it prints, and how it ends.

pub(crate) mod ending;
pub mod output;
pub(crate) mod ownership;
pub(crate) mod session;
pub mod settings;
pub mod user;
pub(crate) mod words;
