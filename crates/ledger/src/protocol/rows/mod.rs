//! What the protocol takes and gives. Plain data, no SQL. Times are microseconds of UTC.

mod journal;
mod partition;
mod put_aside;
mod take;

pub use journal::*;
pub use partition::*;
pub use put_aside::*;
pub use take::*;
