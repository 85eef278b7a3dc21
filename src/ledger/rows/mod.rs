//! What goes into the ledger and comes out of it. Plain data, no SQL. Times are microseconds of
//! UTC.

mod audit;
mod counter;
mod document;
mod import;
mod journal;
mod partition;
mod reference;
mod serials;
mod series;

pub use audit::*;
pub use counter::*;
pub use document::*;
pub use import::*;
pub use journal::*;
pub use partition::*;
pub use reference::*;
pub use serials::*;
pub use series::*;
