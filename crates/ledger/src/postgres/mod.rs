//! The ledger on PostgreSQL: opens the pool, and has what differs in this engine. The statements
//! themselves are shared.

mod bulk;
mod check_up;
mod definitions;
mod engine;
mod fitness;
mod life;
mod look;
mod migrate;
mod names;
mod new_rows;
mod open;
mod runs;
mod slices;
mod tls;

use engine::PgEngine;
pub(super) use look::look;
pub(super) use open::open;
pub(crate) use slices::rows_of;
pub use tls::{postgres_files, postgres_options};
