//! The part of the journal that a caller may see. A search applies it as a condition: pages, and
//! the places where a list goes on, then consist of visible rows and reveal nothing of the others.

use std::sync::Arc;

use numerator_runtime::actor::identity_of;

/// Which rows are visible; the others count as missing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum RowVisibility {
    /// All of them.
    #[default]
    Everything,
    /// Some of them.
    Part {
        /// Those that lie within; none by that where it is nothing.
        within: Option<CodesWithin>,
        /// Those that this identity took, for itself or for a person.
        own: Option<Arc<str>>,
    },
}

/// Series and projects by their codes. A list that is `None` restricts nothing; a row without a
/// project is within no list of projects.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CodesWithin {
    /// Series.
    pub series: Option<Vec<String>>,
    /// Projects.
    pub projects: Option<Vec<String>>,
}

impl RowVisibility {
    /// Whether a row is visible that was issued to an actor, of that series and project.
    #[must_use]
    pub fn has(&self, actor: &str, series: &str, project: Option<&str>) -> bool {
        match self {
            RowVisibility::Everything => true,
            RowVisibility::Part { within, own } => {
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
