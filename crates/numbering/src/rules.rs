//! Which series serves a request: the most specific rule wins, then the default.
//!
//! Never falls back to a series that does not take the type: an unknown type is refused.

use jiff::Timestamp;
use thiserror::Error;

use super::error::excerpt;
use super::hints::{IN_BRIEF, TypesServed};
use super::names::{Names, listed};
use super::offer::{Misfit, Offer};
use super::{Inputs, Series};

/// The outcome of a choice: the index of the chosen series among those offered.
pub type Choice = usize;

/// No series serves the request.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum RuleError {
    /// No series knows the type.
    #[error("unknown document type {type_code:?}; {hint}")]
    UnknownType {
        /// The type, shortened.
        type_code: String,
        /// Which types are served, or the remedy if none is.
        hint: String,
    },
    /// The type exists, but no series numbers it (for this project, originator and sub type).
    #[error("document type {type_code:?} has no numbering configured; {hint}")]
    TypeNotConfigured {
        /// The type, shortened.
        type_code: String,
        /// For which projects it is numbered, or which types are.
        hint: String,
    },
    /// The check whether two series are always distinguished by better rules takes too long.
    #[error(
        "whether a more specific series takes all that {first} and {second} serve equally well is \
         not found out in {steps_max} steps; list fewer projects, originators, types and sub types \
         in `serves` of one, and apply it"
    )]
    Unsettled {
        /// Code of one.
        first: String,
        /// Code of the other.
        second: String,
        /// The bound.
        steps_max: u64,
    },
    /// Two series serve other days of the same requests, and may read a moment as different days.
    #[error(
        "series {first} and {second} serve document type {type_code:?} on other days, which begin \
         in another time zone in each: a moment may be of both series, or of none; give both the \
         same `timezone`"
    )]
    Zones {
        /// The type, shortened.
        type_code: String,
        /// Code of one.
        first: String,
        /// Code of the other.
        second: String,
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

impl RuleError {
    /// A series that cannot be used may be the one for the request.
    #[must_use]
    pub fn set_aside(code: &str, why: &str, inputs: &Inputs) -> Self {
        let hint = format!("series {code} may number it, and is set aside: {why}");
        RuleError::TypeNotConfigured { type_code: type_in_words(inputs), hint }
    }

    /// An inactive series took the request before the one that would serve it now.
    #[must_use]
    pub fn waiting(resting: &Series, chosen: &Series, inputs: &Inputs) -> Self {
        let (code, other) = (&resting.definition.code, &chosen.definition.code);
        let hint = format!(
            "series {code} numbered it, and is not active; series {other} takes it once it is \
             proved to repeat nothing: `numerator series activate {other}`"
        );
        RuleError::TypeNotConfigured { type_code: type_in_words(inputs), hint }
    }
}

/// What a rule names of a request. Compared in the order of these fields: every rule wins over a
/// default; then the one that names more wins, and among equals the one that names the project, the
/// originator, the type, the sub type, in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Rank {
    pub(super) is_rule: bool,
    named: usize,
    project: bool,
    originator: bool,
    type_code: bool,
    sub_type: bool,
}

impl Rank {
    /// Project, originator, type and sub type, each whether it is named.
    pub(super) fn new(is_default: bool, named: [bool; 4]) -> Self {
        let [project, originator, type_code, sub_type] = named;
        let count = named.into_iter().filter(|named| *named).count();
        Rank { is_rule: !is_default, named: count, project, originator, type_code, sub_type }
    }

    /// What is named, in words.
    fn names(self) -> String {
        let fields = [
            (self.project, "the project"),
            (self.originator, "the originator"),
            (self.type_code, "the type"),
            (self.sub_type, "the sub type"),
        ];
        let named: Vec<&str> = fields.into_iter().filter(|(is, _)| *is).map(|(_, f)| f).collect();
        let default = if self.is_rule { "" } else { ", as a default" };
        match &named[..] {
            [] => format!("names nothing{default}"),
            named => format!("names {}{default}", named.join(", ")),
        }
    }
}

/// Outcome for one series in a choice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It serves the request.
    Serves,
    /// It would, but so would another one equally well.
    Ties,
    /// It would, but another one is more specific.
    Yields,
    /// It does not take the request.
    Refuses,
}

/// Why one series serves a request, or why not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explanation {
    /// Code of the series.
    pub series: String,
    /// Its outcome.
    pub verdict: Verdict,
    /// Why, in words.
    pub why: String,
}

/// Chooses among active series: the most specific rule, then the most specific default. A request
/// without a date is dated `now`.
///
/// # Errors
/// See [`RuleError`].
pub fn choose<'a>(
    series: impl IntoIterator<Item = &'a Series>,
    inputs: &Inputs,
    now: Timestamp,
) -> Result<Choice, RuleError> {
    let offered: Vec<&Series> = series.into_iter().collect();
    let chosen = choose_telling(offered.iter().copied(), inputs, now, None);
    match chosen {
        Err(RuleError::UnknownType { .. } | RuleError::TypeNotConfigured { .. }) => {
            let types = TypesServed::of(offered.iter().copied());
            choose_telling(offered.iter().copied(), inputs, now, Some(&types))
        }
        chosen => chosen,
    }
}

/// The same; a refusal then lists what is served, these types if nothing fits the request better;
/// or is brief, if none are given.
///
/// # Errors
/// See [`RuleError`].
pub fn choose_telling<'a>(
    series: impl IntoIterator<Item = &'a Series>,
    inputs: &Inputs,
    now: Timestamp,
    types: Option<&TypesServed>,
) -> Result<Choice, RuleError> {
    let offered: Vec<&Series> = series.into_iter().collect();
    let offer = Offer::of(&offered, inputs, now);
    let mut best: Option<(Rank, Choice)> = None;
    let mut rival: Option<Choice> = None;
    let mut known = false;
    for (index, candidate) in offered.iter().enumerate() {
        let rank = match offer.fit(candidate) {
            Ok(rank) => rank,
            Err(misfit) => {
                known |= misfit != Misfit::Type;
                continue;
            }
        };
        match best {
            Some((better, _)) if better > rank => {}
            Some((equal, _)) if equal == rank => rival = Some(index),
            _ => (best, rival) = (Some((rank, index)), None),
        }
    }
    match (best, rival) {
        (Some((_, chosen)), None) => Ok(chosen),
        // Whichever series is chosen, its draft refuses the date.
        (Some((_, chosen)), Some(_)) if offered[chosen].document_day(inputs, now).is_err() => {
            Ok(chosen)
        }
        (Some((_, chosen)), Some(rival)) => {
            let code = |index: Choice| offered[index].definition.code.clone();
            let (first, second) = (code(chosen), code(rival));
            Err(RuleError::Ambiguous { type_code: type_in_words(inputs), first, second })
        }
        (None, _) if known => {
            let hint = types.map_or_else(|| IN_BRIEF.to_owned(), |types| types.hint(&offer));
            Err(RuleError::TypeNotConfigured { type_code: type_in_words(inputs), hint })
        }
        (None, _) => {
            let hint = types.map_or_else(
                || IN_BRIEF.to_owned(),
                |types| types.listed_beside(&inputs.type_code),
            );
            Err(RuleError::UnknownType { type_code: type_in_words(inputs), hint })
        }
    }
}

/// Explains for every series whether it serves a request, and why not; the one that does comes
/// first, those that do not take the request last.
#[must_use]
pub fn explain<'a>(
    series: impl IntoIterator<Item = &'a Series>,
    inputs: &Inputs,
    now: Timestamp,
) -> Vec<Explanation> {
    let offered: Vec<&Series> = series.into_iter().collect();
    let offer = Offer::of(&offered, inputs, now);
    let mut fits: Vec<(Rank, &str)> = Vec::new();
    let mut refusals = Vec::new();
    for candidate in &offered {
        let code = candidate.definition.code.as_str();
        match offer.fit(candidate) {
            Ok(rank) => fits.push((rank, code)),
            Err(misfit) => {
                let (series, why) = (code.to_owned(), why_not(candidate, misfit));
                refusals.push(Explanation { series, verdict: Verdict::Refuses, why });
            }
        }
    }
    fits.sort_by(|(a, _), (b, _)| b.cmp(a));
    let Some(&(best, chosen)) = fits.first() else { return refusals };
    let ties = fits.iter().filter(|(rank, _)| *rank == best).count();
    let explained = fits.into_iter().map(|(rank, code)| {
        let (verdict, why) = match (rank == best, ties) {
            (true, 1) => (Verdict::Serves, rank.names()),
            (true, _) => (Verdict::Ties, format!("{}, and so does another", rank.names())),
            (false, _) => (Verdict::Yields, format!("{}; yields to {chosen}", rank.names())),
        };
        Explanation { series: code.to_owned(), verdict, why }
    });
    explained.chain(refusals).collect()
}

/// Whether a series would be chosen before another one, or as well as it, if it were among those
/// offered. Not for a date that the other one refuses anyway.
#[must_use]
pub fn comes_before<'a>(
    series: &Series,
    chosen: &Series,
    offered: impl IntoIterator<Item = &'a Series>,
    inputs: &Inputs,
    now: Timestamp,
) -> bool {
    let offered: Vec<&Series> = offered.into_iter().collect();
    let offer = Offer::of(&offered, inputs, now);
    let rank = |one: &Series| offer.fit(one).ok();
    rank(series).is_some_and(|rank_of| rank(chosen).is_none_or(|chosen| rank_of >= chosen))
        && chosen.document_day(inputs, now).is_ok()
}

/// Whether a series takes a request on some day, if it were among those offered: on any day that
/// the request may name, and whichever series comes before it.
#[must_use]
pub fn fits_some_day(series: &Series, offered: &[&Series], inputs: &Inputs) -> bool {
    let offer = Offer::of(offered, inputs, Timestamp::UNIX_EPOCH);
    matches!(offer.fit(series), Ok(_) | Err(Misfit::Date))
}

/// The type as the caller named it.
fn type_in_words(inputs: &Inputs) -> String {
    match &inputs.type_id {
        Some(id) if inputs.type_code.is_empty() => format!("id {}", excerpt(id)),
        _ => excerpt(&inputs.type_code),
    }
}

/// Why a series does not take the request, in words.
fn why_not(series: &Series, misfit: Misfit) -> String {
    let only = |kind: &str, names: &[String]| {
        format!("serves {} only", listed(kind, &[&Names::from(names.to_vec())]))
    };
    let serves = &series.definition.serves;
    match misfit {
        Misfit::Type => only("type", &serves.types),
        Misfit::Undetermined => "says that the type is not determined yet".into(),
        Misfit::Project => only("project", &serves.projects),
        Misfit::Originator => only("originator", &serves.originators),
        Misfit::SubType => only("sub type", &serves.sub_types),
        Misfit::Date => format!("serves documents dated {} only", series.window),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::testing::{NOW, inputs, reference, series};
    use super::super::{ReferenceData, References, VariableDefinition};
    use super::*;

    fn asked(type_code: &str, project: Option<&str>) -> Inputs {
        inputs(type_code, project.unwrap_or_default(), "", &[])
    }

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
                choose(&offers, &asked(type_code, project), NOW),
                Ok(expected),
                "{type_code} {project:?}"
            );
        }
    }

    #[test]
    fn a_default_for_a_project_yields_to_a_series_for_any_project() {
        let offers =
            [offer("default", &["RFA"], &["P1"], true), offer("any", &["RFA"], &[], false)];
        assert_eq!(choose(&offers, &asked("RFA", Some("P1")), NOW), Ok(1));
    }

    #[test]
    fn equal_rules_are_an_error_that_names_both() {
        let offers = [offer("a", &["RFA"], &[], false), offer("b", &["RFA"], &[], false)];
        let error = choose(&offers, &asked("RFA", None), NOW).expect_err("ambiguous").to_string();
        let says =
            "series a and b serve document type \"RFA\" equally well; change `serves` of one";
        assert!(error.starts_with(says), "{error}");
        let better = [
            offer("a", &["X"], &[], true),
            offer("b", &["X"], &[], true),
            offer("c", &["X"], &[], false),
        ];
        assert_eq!(choose(&better, &asked("X", None), NOW), Ok(2));
    }

    #[test]
    fn unknown_and_unnumbered_types_are_told_apart_and_what_is_served_is_listed() {
        let mut offers = vec![offer("named", &["RFA"], &["P1"], false)];
        offers.push(series(|definition| {
            definition.serves.undetermined_types = vec!["DRAWING".into()];
            definition.serves.default = true;
        }));
        let refusal = |type_code: &str, project: Option<&str>| {
            choose(&offers, &asked(type_code, project), NOW).expect_err(type_code)
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
        let told = "unknown document type \"rfa\"; the nearest is \"RFA\"; served: type RFA, T";
        assert_eq!(unknown, told);
        let none: [Series; 0] = [];
        let error = choose(&none, &asked("X", None), NOW).expect_err("no series").to_string();
        assert!(error.contains("no series") && error.contains("series apply"), "{error}");
    }

    #[test]
    fn a_long_list_of_what_is_served_is_shortened() {
        let types: Vec<String> = (10..50).map(|number| format!("T{number}")).collect();
        let types: Vec<&str> = types.iter().map(String::as_str).collect();
        let error =
            choose(&[offer("a", &types, &[], false)], &asked("X", None), NOW).expect_err("unknown");
        assert!(error.to_string().ends_with("T20, T21, … (40 in all)"), "{error}");
    }

    #[test]
    fn more_named_fields_win_and_among_equals_project_before_originator_before_sub_type() {
        let named = |code: &str, projects: &[&str], originators: &[&str], sub_types: &[&str]| {
            series(|definition| {
                let own = |list: &[&str]| list.iter().map(ToString::to_string).collect();
                definition.code = code.into();
                definition.serves.projects = own(projects);
                definition.serves.originators = own(originators);
                definition.serves.sub_types = own(sub_types);
                for name in ["ORIGINATOR", "SUB_TYPE", "ORG_CODE"] {
                    definition.variables.insert(name.into(), VariableDefinition::default());
                }
            })
        };
        let offers = [
            named("any", &[], &[], &[]),
            named("project", &["P"], &[], &[]),
            named("originator", &[], &["O"], &[]),
            named("sub-type", &[], &[], &["21"]),
            named("two", &[], &["O"], &["21"]),
        ];
        let chosen = |project: &str, context: &[(&str, &str)]| {
            let index = choose(&offers, &inputs("T", project, "", context), NOW).unwrap();
            offers[index].definition().code.clone()
        };
        assert_eq!(chosen("", &[]), "any");
        assert_eq!(chosen("P", &[("ORIGINATOR", "O")]), "project");
        assert_eq!(chosen("Q", &[("ORIGINATOR", "O")]), "originator");
        assert_eq!(chosen("Q", &[("ORG_CODE", "O")]), "originator");
        assert_eq!(chosen("Q", &[("SUB_TYPE", "21")]), "sub-type");
        assert_eq!(chosen("P", &[("ORIGINATOR", "O"), ("SUB_TYPE", "21")]), "two");
        let request = inputs("T", "P", "", &[("ORIGINATOR", "O")]);
        let told = explain(&offers, &request, NOW);
        let verdicts: Vec<_> = told.iter().map(|told| (&*told.series, told.verdict)).collect();
        let expected = [
            ("project", Verdict::Serves),
            ("originator", Verdict::Yields),
            ("any", Verdict::Yields),
            ("sub-type", Verdict::Refuses),
            ("two", Verdict::Refuses),
        ];
        assert_eq!(verdicts, expected);
        assert_eq!(told[0].why, "names the project, the type");
        assert_eq!(told[1].why, "names the originator, the type; yields to project");
        assert_eq!(told[3].why, "serves sub type 21 only");
        let refusal = choose(&offers[4..], &request, NOW).expect_err("no sub type").to_string();
        assert!(refusal.ends_with("it is numbered for sub type 21"), "{refusal}");
    }

    #[test]
    fn a_default_with_a_table_takes_a_new_type_at_once_but_no_undetermined_one() {
        let types = [("1", "RFA"), ("2", "NEW"), ("3", "DRAWING")];
        let rows = types.map(|(id, code)| reference("types", id, code, true));
        let data = Arc::new(ReferenceData::new(rows, []));
        let default = series(|definition| {
            definition.code = "default".into();
            definition.serves.default = true;
            definition.serves.undetermined_types = vec!["DRAWING".into()];
            definition.references =
                References { type_code: Some("types".into()), ..References::default() };
        });
        let offers = [offer("rfa", &["RFA"], &[], false), default.with_reference(data)];
        assert_eq!(choose(&offers, &asked("NEW", None), NOW), Ok(1));
        assert_eq!(choose(&offers, &asked("RFA", None), NOW), Ok(0));
        let by_id = Inputs { type_id: Some("2".into()), ..Inputs::default() };
        assert_eq!(choose(&offers, &by_id, NOW), Ok(1));
        let by_id = Inputs { type_id: Some("9".into()), ..Inputs::default() };
        let refused = choose(&offers, &by_id, NOW).expect_err("no such id").to_string();
        assert!(refused.starts_with("unknown document type \"id 9\""), "{refused}");
        let drawing = choose(&offers, &asked("DRAWING", None), NOW);
        assert!(matches!(drawing, Err(RuleError::TypeNotConfigured { .. })), "{drawing:?}");
        let song = choose(&offers, &asked("SONG", None), NOW);
        assert!(matches!(song, Err(RuleError::UnknownType { .. })), "{song:?}");
    }
}
