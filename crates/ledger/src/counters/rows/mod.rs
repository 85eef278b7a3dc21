//! What counters are read as. Plain data, no SQL.

mod counter;
mod counter_list;

pub use counter::*;
pub use counter_list::*;
