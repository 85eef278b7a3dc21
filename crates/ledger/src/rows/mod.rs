//! What goes into the ledger and comes out of it. Plain data, no SQL. Times are microseconds of
//! UTC.

mod account;
mod archive;
mod audit;
mod change;
mod counter;
mod counter_list;
mod document;
mod event;
mod exchange_serials;
mod filter;
mod import;
mod journal;
mod partition;
mod projects;
mod put_aside;
mod reference;
mod row_sight;
mod said;
mod seal;
mod series;
mod token;

pub use account::*;
pub use archive::*;
pub use audit::*;
pub use change::*;
pub use counter::*;
pub use counter_list::*;
pub use document::*;
pub use event::*;
pub use exchange_serials::*;
pub use filter::*;
pub use import::*;
pub use journal::*;
pub use partition::*;
pub(crate) use projects::*;
pub use put_aside::*;
pub use reference::*;
pub use row_sight::*;
pub use said::*;
pub use seal::*;
pub use series::*;
pub use token::*;
