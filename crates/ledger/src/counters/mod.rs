//! The counters: read, listed, and locked by what moves them. A counter's own row is the fence
//! (F4).

pub(crate) mod list;
pub(crate) mod rows;
pub(crate) mod table;

use crate::calls::noun;

noun!(
    /// The counters as they are read. What moves them is the protocol.
    Counters,
    counters
);
