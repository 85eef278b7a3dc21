//! What the register is asked and answers. Plain data, no SQL. Times are microseconds of UTC.

mod account;
mod assigned_number;
mod document;
mod filter;
mod row_visibility;

pub use account::*;
pub use assigned_number::*;
pub use document::*;
pub use filter::*;
pub use row_visibility::*;
