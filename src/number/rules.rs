//! Which series serves a request (R2.9): the most specific rule wins, then the default.
//!
//! Never falls back to a series that does not name the type: an unknown type is refused.

use std::collections::BTreeSet;

use thiserror::Error;

use super::error::excerpt;
use super::text::normalise;
use super::{Series, SeriesDefinition};

/// How many types or projects a refusal lists.
const LISTED_MAX: usize = 12;

/// The outcome of a choice: the index of the chosen series among those offered.
pub type Choice = usize;

/// No series serves the request.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum RuleError {
    /// No series has ever heard of the type.
    #[error("unknown document type {type_code:?}; {hint}")]
    UnknownType {
        /// The type, shortened.
        type_code: String,
        /// Which types are served, or what to do where none is.
        hint: String,
    },
    /// The type exists, but no series numbers it (for this project).
    #[error("document type {type_code:?} has no numbering configured; {hint}")]
    TypeNotConfigured {
        /// The type, shortened.
        type_code: String,
        /// For which projects it is numbered, or which types are.
        hint: String,
    },
    /// Two series serve the request equally well.
    #[error(
        "series {first} and {second} serve document type {type_code:?} equally well; \
         change `serves` of one and apply it"
    )]
    Ambiguous {
        /// The type, shortened.
        type_code: String,
        /// Code of one.
        first: String,
        /// Code of the other.
        second: String,
    },
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
    let offered: Vec<&SeriesDefinition> = series.into_iter().map(Series::definition).collect();
    let project = project.map(normalise);
    choose_among(&offered, &normalise(type_code), project.as_deref())
}

/// Checks that these series, all active at once, leave no request without a choice: every type with
/// every project that one of its series names, and with any other.
///
/// # Errors
/// The first [`RuleError::Ambiguous`].
pub fn check_rules<'a>(
    definitions: impl IntoIterator<Item = &'a SeriesDefinition>,
) -> Result<(), RuleError> {
    let all: Vec<&SeriesDefinition> = definitions.into_iter().collect();
    let types: BTreeSet<&str> = all.iter().flat_map(|offer| served_types(offer)).collect();
    for type_code in types {
        let names = |offer: &&SeriesDefinition| served_types(offer).any(|name| name == type_code);
        let offered: Vec<&SeriesDefinition> = all.iter().copied().filter(names).collect();
        let projects = offered.iter().flat_map(|offer| &offer.serves.projects);
        let projects: BTreeSet<Option<&str>> = projects.map(|name| Some(name.as_str())).collect();
        for project in projects.into_iter().chain([None]) {
            if let Err(error @ RuleError::Ambiguous { .. }) =
                choose_among(&offered, type_code, project)
            {
                return Err(error);
            }
        }
    }
    Ok(())
}

/// The choice for a normalised type and project.
fn choose_among(
    offered: &[&SeriesDefinition],
    type_code: &str,
    project: Option<&str>,
) -> Result<Choice, RuleError> {
    let mut best: Option<((bool, bool), Choice)> = None;
    let mut rival: Option<Choice> = None;
    let mut known = false;
    for (index, candidate) in offered.iter().enumerate() {
        let serves = &candidate.serves;
        if !serves.types.iter().any(|served| served == type_code) {
            known |= serves.undetermined_types.iter().any(|name| name == type_code);
            continue;
        }
        known = true;
        let named = |project: &str| serves.projects.iter().any(|served| served == project);
        let names_project = project.is_some_and(named);
        if !names_project && !serves.projects.is_empty() {
            continue;
        }
        let rank = (!serves.default, names_project);
        match best {
            Some((better, _)) if better > rank => {}
            Some((equal, _)) if equal == rank => rival = Some(index),
            _ => (best, rival) = (Some((rank, index)), None),
        }
    }
    let code = |index: Choice| offered[index].code.clone();
    let (type_code, name) = (excerpt(type_code), type_code);
    match (best, rival) {
        (Some((_, chosen)), None) => Ok(chosen),
        (Some((_, chosen)), Some(rival)) => {
            let (first, second) = (code(chosen), code(rival));
            Err(RuleError::Ambiguous { type_code, first, second })
        }
        (None, _) if known => {
            let hint = hint_for_known(offered, name);
            Err(RuleError::TypeNotConfigured { type_code, hint })
        }
        (None, _) => Err(RuleError::UnknownType { type_code, hint: hint_of_types(offered) }),
    }
}

fn served_types(offer: &SeriesDefinition) -> impl Iterator<Item = &str> {
    offer.serves.types.iter().map(String::as_str)
}

/// What a caller may ask for instead of a type that is not numbered for the project.
fn hint_for_known(offered: &[&SeriesDefinition], type_code: &str) -> String {
    let names = |offer: &&&SeriesDefinition| served_types(offer).any(|name| name == type_code);
    let serving = offered.iter().filter(names);
    let projects: Vec<&str> =
        serving.flat_map(|offer| offer.serves.projects.iter().map(String::as_str)).collect();
    if projects.is_empty() {
        hint_of_types(offered)
    } else {
        format!("it is numbered for {}", listed("project", projects))
    }
}

/// Which types are served.
fn hint_of_types(offered: &[&SeriesDefinition]) -> String {
    if offered.is_empty() {
        return "the ledger has no series; save some with `numerator series apply FILE`".into();
    }
    let types = offered.iter().flat_map(|offer| served_types(offer)).collect();
    format!("served: {}", listed("type", types))
}

/// The first few of some names, each once, and how many there are where not all are shown.
fn listed(kind: &str, mut names: Vec<&str>) -> String {
    names.sort_unstable();
    names.dedup();
    let shown = names.iter().take(LISTED_MAX).map(|name| excerpt(name)).collect::<Vec<_>>();
    let shown = format!("{kind} {}", shown.join(", "));
    if names.len() > LISTED_MAX { format!("{shown}, … ({} in all)", names.len()) } else { shown }
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
        let error = choose(&offers, "RFA", None).expect_err("ambiguous").to_string();
        let says =
            "series a and b serve document type \"RFA\" equally well; change `serves` of one";
        assert!(error.starts_with(says), "{error}");
        let better = [
            offer("a", &["X"], &[], true),
            offer("b", &["X"], &[], true),
            offer("c", &["X"], &[], false),
        ];
        assert_eq!(choose(&better, "X", None), Ok(2));
    }

    #[test]
    fn unknown_and_unnumbered_types_are_told_apart_and_what_is_served_is_listed() {
        let mut offers = vec![offer("named", &["RFA"], &["P1"], false)];
        offers.push(series(|definition| {
            definition.serves.undetermined_types = vec!["DRAWING".into()];
            definition.serves.default = true;
        }));
        let refusal = |type_code: &str, project: Option<&str>| {
            choose(&offers, type_code, project).expect_err(type_code)
        };
        for (type_code, project, hint) in [
            ("DRAWING", Some("P1"), "served: type RFA, T"),
            ("RFA", None, "it is numbered for project P1"),
            ("RFA", Some("P2"), "it is numbered for project P1"),
        ] {
            let (type_code, hint) = (type_code.to_owned(), hint.to_owned());
            let expected = RuleError::TypeNotConfigured { type_code: type_code.clone(), hint };
            assert_eq!(refusal(&type_code, project), expected);
        }
        let unknown = refusal("rfa", None).to_string();
        assert_eq!(unknown, "unknown document type \"rfa\"; served: type RFA, T");
        let none: [Series; 0] = [];
        let error = choose(&none, "X", None).expect_err("no series").to_string();
        assert!(error.contains("no series") && error.contains("series apply"), "{error}");
    }

    #[test]
    fn a_long_list_of_what_is_served_is_shortened() {
        let types: Vec<String> = (10..50).map(|number| format!("T{number}")).collect();
        let types: Vec<&str> = types.iter().map(String::as_str).collect();
        let error = choose(&[offer("a", &types, &[], false)], "X", None).expect_err("unknown");
        assert!(error.to_string().ends_with("T20, T21, … (40 in all)"), "{error}");
    }

    #[test]
    fn series_are_checked_together_as_requests_would_meet_them() {
        let sound = [
            offer("default", &["RFI", "RFA"], &[], true),
            offer("any", &["RFA"], &[], false),
            offer("p1", &["RFA"], &["P1"], false),
            offer("p2", &["RFA"], &["P2"], false),
            // Two defaults that no request meets, since `any` serves the type.
            offer("second", &["RFA"], &[], true),
        ];
        let sound: Vec<_> = sound.iter().map(|series| series.definition().clone()).collect();
        assert_eq!(check_rules(&sound), Ok(()));
        for (types, projects, default, rival) in [
            (["X", "RFA"], &[][..], false, "any"),
            (["X", "RFA"], &["P2", "P3"][..], false, "p2"),
            (["X", "RFI"], &[][..], true, "default"),
        ] {
            let new = offer("new", &types, projects, default);
            let all = sound.iter().chain([new.definition()]);
            let error = check_rules(all).expect_err(rival).to_string();
            let says = format!("series {rival} and new serve document type {:?}", types[1]);
            assert!(error.starts_with(&says), "{error}");
        }
    }
}
