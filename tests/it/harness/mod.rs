//! Starts real servers on free ports in temporary folders and kills them afterwards.
//!
//! Never relies on a server that was running before; never ends a process it did not start.

pub(crate) mod load;
pub(crate) mod postgres;
pub(crate) mod process;
pub(crate) mod proxy;
pub(crate) mod redis;
pub(crate) mod service;
