//! Which series serves a request (R2.9): the most specific rule wins, then the default.
//!
//! Never falls back to a series that does not name the type: an unknown type is refused.

use thiserror::Error;

use super::Series;
use super::error::excerpt;
use super::text::normalise;

/// The outcome of a choice: the index of the chosen series among those offered.
pub type Choice = usize;

/// No series serves the request.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum RuleError {
    /// No series has ever heard of the type.
    #[error("unknown document type {0:?}")]
    UnknownType(String),
    /// The type exists, but no series numbers it (for this project).
    #[error("document type {0:?} has no numbering configured")]
    TypeNotConfigured(String),
    /// Two series serve the request equally well.
    #[error("series {0} and {1} both serve the request; deactivate one or name a project")]
    Ambiguous(String, String),
}

/// Chooses among active series.
///
/// A default yields to every other series; among equals, one that names the project wins over one
/// for any project.
///
/// # Errors
/// See [`RuleError`].
pub fn choose<'a>(
    series: impl IntoIterator<Item = &'a Series>,
    type_code: &str,
    project: Option<&str>,
) -> Result<Choice, RuleError> {
    let type_code = normalise(type_code);
    let project = project.map(normalise);
    let mut best: Option<((bool, bool), Choice, &Series)> = None;
    let mut rival: Option<&Series> = None;
    let mut known = false;
    for (index, candidate) in series.into_iter().enumerate() {
        let serves = &candidate.definition.serves;
        let names = |types: &[String]| types.iter().any(|served| *served == type_code);
        if !names(&serves.types) {
            known |= names(&serves.undetermined_types);
            continue;
        }
        known = true;
        let named = |project: &str| serves.projects.iter().any(|served| served == project);
        let names_project = project.as_deref().is_some_and(named);
        if !names_project && !serves.projects.is_empty() {
            continue;
        }
        let rank = (!serves.default, names_project);
        match best {
            Some((better, ..)) if better > rank => {}
            Some((equal, ..)) if equal == rank => rival = Some(candidate),
            _ => (best, rival) = (Some((rank, index, candidate)), None),
        }
    }
    let code = |series: &Series| series.definition.code.clone();
    match (best, rival) {
        (Some((_, chosen, _)), None) => Ok(chosen),
        (Some((.., chosen)), Some(rival)) => Err(RuleError::Ambiguous(code(chosen), code(rival))),
        (None, _) if known => Err(RuleError::TypeNotConfigured(excerpt(&type_code))),
        (None, _) => Err(RuleError::UnknownType(excerpt(&type_code))),
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::series;
    use super::*;

    fn offer(code: &str, types: &[&str], projects: &[&str], default: bool) -> Series {
        series(|definition| {
            definition.code = code.into();
            definition.serves.types = types.iter().map(ToString::to_string).collect();
            definition.serves.projects = projects.iter().map(ToString::to_string).collect();
            definition.serves.default = default;
        })
    }

    #[test]
    fn a_named_project_beats_any_project_and_everything_beats_the_default() {
        let offers = [
            offer("default", &["RFI", "RFA"], &[], true),
            offer("any", &["RFA"], &[], false),
            offer("named", &["RFA"], &["P1", "P2"], false),
            offer("default-named", &["RFI"], &["P1"], true),
        ];
        for (type_code, project, expected) in [
            ("RFA", None, 1),
            ("RFA", Some("P9"), 1),
            ("RFA", Some("P2"), 2),
            ("RFI", Some("P9"), 0),
            ("RFI", Some("P1"), 3),
        ] {
            assert_eq!(
                choose(&offers, type_code, project),
                Ok(expected),
                "{type_code} {project:?}"
            );
        }
    }

    #[test]
    fn a_default_for_a_project_yields_to_a_series_for_any_project() {
        let offers =
            [offer("default", &["RFA"], &["P1"], true), offer("any", &["RFA"], &[], false)];
        assert_eq!(choose(&offers, "RFA", Some("P1")), Ok(1));
    }

    #[test]
    fn equal_rules_are_an_error_that_names_both() {
        let offers = [offer("a", &["RFA"], &[], false), offer("b", &["RFA"], &[], false)];
        let expected = RuleError::Ambiguous("a".into(), "b".into());
        assert_eq!(choose(&offers, "RFA", None), Err(expected));
        let better = [
            offer("a", &["X"], &[], true),
            offer("b", &["X"], &[], true),
            offer("c", &["X"], &[], false),
        ];
        assert_eq!(choose(&better, "X", None), Ok(2));
    }

    #[test]
    fn unknown_and_unnumbered_types_are_told_apart() {
        let mut offers = vec![offer("named", &["RFA"], &["P1"], false)];
        offers.push(series(|definition| {
            definition.serves.undetermined_types = vec!["DRAWING".into()];
            definition.serves.default = true;
        }));
        let unnumbered = |name: &str| Err(RuleError::TypeNotConfigured(name.into()));
        assert_eq!(choose(&offers, "DRAWING", Some("P1")), unnumbered("DRAWING"));
        assert_eq!(choose(&offers, "RFA", None), unnumbered("RFA"));
        assert_eq!(choose(&offers, "RFA", Some("P2")), unnumbered("RFA"));
        assert_eq!(choose(&offers, "rfa", None), Err(RuleError::UnknownType("rfa".into())));
        let none: [Series; 0] = [];
        assert_eq!(choose(&none, "X", None), Err(RuleError::UnknownType("X".into())));
    }
}
