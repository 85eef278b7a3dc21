//! Numbers that another system, or a person, has issued, on their way in.

pub(crate) mod by_hand;
pub(crate) mod rows;
pub(crate) mod writing;

use crate::calls::noun;
use crate::columns::hash64;

noun!(
    /// Numbers that another system has issued.
    Imports,
    imports
);

/// The name of the lock of whatever fills gaps without the rows of their counters. Two of these
/// that fill one gap would each put back what the other took out.
fn one_at_a_time() -> i64 {
    i64::from_be_bytes(hash64("numerator import").to_be_bytes())
}
