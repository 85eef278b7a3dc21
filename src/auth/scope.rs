//! To which series and projects an identity is restricted.

use std::sync::Arc;

/// Series and projects to which an identity is restricted; what it does not reach looks to it like
/// what does not exist.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scope {
    series: Option<Arc<[String]>>,
    projects: Option<Arc<[String]>>,
}

impl Scope {
    /// Everything.
    pub const EVERYTHING: Scope = Scope { series: None, projects: None };

    /// Codes of series and of projects; each list that is empty narrows nothing.
    #[must_use]
    pub fn of(series: Vec<String>, projects: Vec<String>) -> Self {
        let restricted = |list: Vec<String>| (!list.is_empty()).then(|| list.into());
        Scope { series: restricted(series), projects: restricted(projects) }
    }

    /// Whether it is restricted at all.
    #[must_use]
    pub const fn is_everything(&self) -> bool {
        self.series.is_none() && self.projects.is_none()
    }

    /// The codes of series to which it is restricted; none where to none.
    #[must_use]
    pub fn series(&self) -> &[String] {
        self.series.as_deref().unwrap_or_default()
    }

    /// The codes of projects to which it is restricted; none where to none.
    #[must_use]
    pub fn projects(&self) -> &[String] {
        self.projects.as_deref().unwrap_or_default()
    }

    /// The projects to which it is restricted, shared; nothing where to none.
    #[must_use]
    pub fn projects_within(&self) -> Option<Arc<[String]>> {
        self.projects.clone()
    }

    /// Whether a series may be seen, whatever projects it numbers.
    #[must_use]
    pub fn has_series(&self, code: &str) -> bool {
        self.series.as_ref().is_none_or(|list| list.iter().any(|known| known == code))
    }

    /// Whether a project may be seen. What belongs to no project is out of scope where the identity
    /// is restricted to projects.
    #[must_use]
    pub fn has_project(&self, project: Option<&str>) -> bool {
        let Some(list) = &self.projects else { return true };
        project.is_some_and(|project| list.iter().any(|known| known == project))
    }

    /// Whether a number of that series and project may be seen.
    #[must_use]
    pub fn has(&self, series: &str, project: Option<&str>) -> bool {
        self.has_series(series) && self.has_project(project)
    }

    /// Whether a series that serves these projects (any, where it names none) may be seen.
    #[must_use]
    pub fn shows(&self, code: &str, served: &[String]) -> bool {
        self.has_series(code)
            && (served.is_empty()
                || served.iter().any(|project| self.has_project(Some(project.as_str()))))
    }

    /// Whether everything that a series numbers is within reach: only then it may be changed.
    #[must_use]
    pub fn holds(&self, code: &str, served: &[String]) -> bool {
        let all = || served.iter().all(|project| self.has_project(Some(project.as_str())));
        self.has_series(code) && (self.projects.is_none() || (!served.is_empty() && all()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(texts: &[&str]) -> Vec<String> {
        texts.iter().map(|&text| text.to_owned()).collect()
    }

    #[test]
    fn who_is_narrowed_reaches_what_is_listed_and_nothing_without_a_project() {
        let restricted = Scope::of(list(&["RFA"]), list(&["C1", "C2"]));
        assert!(restricted.has("RFA", Some("C2")));
        assert!(!restricted.has("RFA", None));
        assert!(!restricted.has("RFA", Some("C3")));
        assert!(!restricted.has("LETTER", Some("C1")));
        assert!(Scope::EVERYTHING.has("X", None));
        assert_eq!(Scope::of(Vec::new(), Vec::new()), Scope::EVERYTHING);
    }

    #[test]
    fn a_series_is_shown_if_it_numbers_one_project_within_reach_and_changed_if_all_are() {
        let restricted = Scope::of(Vec::new(), list(&["C1"]));
        for (served, shows, holds) in [
            (list(&["C1"]), true, true),
            (list(&["C1", "C2"]), true, false),
            (list(&["C2"]), false, false),
            (list(&[]), true, false),
        ] {
            assert_eq!(restricted.shows("S", &served), shows, "{served:?}");
            assert_eq!(restricted.holds("S", &served), holds, "{served:?}");
            assert!(Scope::EVERYTHING.holds("S", &served));
        }
        let of_series = Scope::of(list(&["S"]), Vec::new());
        assert!(of_series.holds("S", &[]) && !of_series.shows("T", &[]));
    }
}
