//! Numbers that another system has issued, on their way in.

pub(crate) mod rows;
pub(crate) mod writing;

use crate::calls::noun;

noun!(
    /// Numbers that another system has issued.
    Imports,
    imports
);
