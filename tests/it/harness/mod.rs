//! Starts real servers on free ports in temporary folders and kills them afterwards.
//!
//! Never relies on a server that was running before; never ends a process it did not start.

pub mod load;
pub mod postgres;
pub mod process;
pub mod redis;
pub mod service;
