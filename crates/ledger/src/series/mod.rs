//! The series: saved, turned off and on, removed, read with their versions. A change of a series is
//! proved against the others under the lock of all of them.

pub(crate) mod acceptance;
pub(crate) mod activity;
pub(crate) mod as_written;
pub(crate) mod kept;
pub(crate) mod project_names;
pub(crate) mod project_room;
pub(crate) mod projects;
pub(crate) mod proving;
pub(crate) mod removal;
pub(crate) mod rows;
pub(crate) mod saving;
pub(crate) mod starts;
pub(crate) mod succession;
pub(crate) mod texts;
pub(crate) mod used;
pub(crate) mod versions;

use crate::calls::noun;

noun!(
    /// The series and their versions.
    Series,
    series
);
