//! The one integration binary: real servers, started by the harness and killed at its end.
#![allow(missing_docs, clippy::unwrap_used, reason = "tests say what they do in their names")]

mod harness;
mod lua_scripts;
mod redis_client;
