//! What of the journal is shown to who asks. A search asks it itself: a page, and where a list goes
//! on, are then made of what is shown, and tell nothing of what lies between.

use std::sync::Arc;

use numerator_runtime::actor::identity_of;

/// Which rows are shown; the others are as if they were not there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum RowSight {
    /// All of them.
    #[default]
    Everything,
    /// Some of them.
    Part {
        /// Those that lie within; none by that where it is nothing.
        within: Option<CodesWithin>,
        /// Those which that identity took, for itself or for whomever.
        own: Option<Arc<str>>,
    },
}

/// Series and projects by their codes. A list that is none narrows nothing; what is of no project
/// lies within no list of projects.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CodesWithin {
    /// Series.
    pub series: Option<Vec<String>>,
    /// Projects.
    pub projects: Option<Vec<String>>,
}

impl RowSight {
    /// Whether a row is shown that an actor was issued, of that series and project.
    #[must_use]
    pub fn has(&self, actor: &str, series: &str, project: Option<&str>) -> bool {
        match self {
            RowSight::Everything => true,
            RowSight::Part { within, own } => {
                within.as_ref().is_some_and(|within| within.has(series, project))
                    || own.as_deref().is_some_and(|own| own == identity_of(actor))
            }
        }
    }
}

impl CodesWithin {
    /// Whether a series and a project lie within.
    #[must_use]
    pub fn has(&self, series: &str, project: Option<&str>) -> bool {
        let lists = |list: &Option<Vec<String>>, code: Option<&str>| {
            list.as_ref().is_none_or(|list| list.iter().any(|known| Some(&**known) == code))
        };
        lists(&self.series, Some(series)) && lists(&self.projects, project)
    }
}
