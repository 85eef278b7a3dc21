//! Finds series between which no rule could choose, before any request meets them.
//!
//! Searches by lists, not by requests: a pair ties if both are as specific, some request fits both,
//! and no better rule takes every such request.

use std::collections::BTreeSet;

use foldhash::HashMap;

use super::error::excerpt;
use super::rules::{Rank, RuleError};
use super::window::{Window, zone_name};
use super::{Series, SeriesDefinition};

/// The values that a rule names of one field; `None`: any.
pub(super) type NamedValues<T> = Option<BTreeSet<T>>;

/// Requests, by the values of project, originator, type and sub type. `None` is a value that no
/// rule names: fewer rules take it than any other, so a tie is found there first.
pub(super) type Region<T> = [NamedValues<T>; 4];

/// Most steps of a check of rules: about a second.
const RULE_STEPS_MAX: u64 = 10_000_000;

/// Place of the project in a region.
pub(super) const PROJECT: usize = 0;

/// Place of the originator in a region.
pub(super) const ORIGINATOR: usize = 1;

/// Place of the type in a region.
pub(super) const TYPE: usize = 2;

/// Place of the sub type in a region.
pub(super) const SUB_TYPE: usize = 3;

/// One rule of a series; it names codes, or what represents them.
pub(super) struct Rule<'a, T = &'a str> {
    pub(super) code: &'a str,
    pub(super) rank: Rank,
    pub(super) names: Region<T>,
    window: Window,
    zone: &'a str,
}

impl<T> Rule<'_, T> {
    /// Whether it takes some days as a whole, as they are read in a zone.
    fn takes_all_of(&self, days: Window, zone: &str) -> bool {
        self.window.is_all() || self.zone == zone && self.window.covers(days)
    }
}

/// Checks that these series, all active at once, leave no request without a choice, whatever type,
/// project, originator and sub type it brings.
///
/// # Errors
/// The first pair, as [`RuleError::Ambiguous`].
pub fn check_rules<'a>(
    definitions: impl IntoIterator<Item = &'a SeriesDefinition>,
) -> Result<(), RuleError> {
    let rules: Vec<Rule<'_>> = definitions.into_iter().flat_map(rules_of).collect();
    let (mut before, mut steps) = (Index::default(), RULE_STEPS_MAX);
    for (place, rule) in rules.iter().enumerate() {
        let earlier = before.beside(rule).into_iter().map(|place| &rules[place]);
        before.add(place, rule);
        for earlier in earlier.filter(|earlier| earlier.rank == rule.rank) {
            must_not_tie([earlier, rule], &rules, &mut steps)?;
        }
    }
    Ok(())
}

/// Refuses two rules of equal rank if some request of some day is left to both, or if days that
/// they do not share begin in two zones.
fn must_not_tie(
    [one, other]: [&Rule<'_>; 2],
    rules: &[Rule<'_>],
    steps: &mut u64,
) -> Result<(), RuleError> {
    let Some(shared) = shared(&one.names, &other.names) else { return Ok(()) };
    let (days, is_one_zone) = (one.window.common(other.window), one.zone == other.zone);
    let better: Vec<&Rule<'_>> = rules.iter().filter(|better| better.rank > other.rank).collect();
    let pieces = match days {
        None if is_one_zone => return Ok(()),
        Some(days) if is_one_zone => {
            let there = better.iter().filter(|better| better.zone == other.zone);
            days.pieces(there.map(|better| better.window))
        }
        // Days of two zones are not compared: only a rule that takes all days takes these.
        _ => vec![Window::default()],
    };
    let (first, second) = (one.code.to_owned(), other.code.to_owned());
    for piece in pieces {
        let taking = better.iter().filter(|better| better.takes_all_of(piece, other.zone));
        let taking: Vec<&Rule<'_>> = taking.copied().collect();
        let left = left_over(shared.clone(), &taking, steps);
        let Ok(left) = left else {
            return Err(RuleError::Unsettled { first, second, steps_max: RULE_STEPS_MAX });
        };
        if let Some(region) = left {
            let type_code = region[TYPE].as_ref().and_then(|types| types.first());
            let type_code = excerpt(type_code.unwrap_or(&"any other"));
            return Err(match days {
                Some(_) => RuleError::Ambiguous { type_code, first, second },
                None => RuleError::Zones { type_code, first, second },
            });
        }
    }
    Ok(())
}

/// Rules by what they name, because among thousands few take a request of one.
#[derive(Default)]
struct Index<'a> {
    naming: [HashMap<&'a str, Vec<usize>>; 4],
    any: [Vec<usize>; 4],
}

impl<'a> Index<'a> {
    fn add(&mut self, place: usize, rule: &Rule<'a>) {
        for (field, names) in rule.names.iter().enumerate() {
            match names {
                None => self.any[field].push(place),
                Some(names) => {
                    for name in names {
                        self.naming[field].entry(name).or_default().push(place);
                    }
                }
            }
        }
    }

    /// All that may take a request that a rule takes, in order; more, if that is not known.
    fn beside(&self, rule: &Rule<'a>) -> Vec<usize> {
        let naming = |field: usize| {
            let names = rule.names[field].iter().flatten();
            names.filter_map(move |name| self.naming[field].get(name))
        };
        let rivals =
            |field: &usize| self.any[*field].len() + naming(*field).map(Vec::len).sum::<usize>();
        let named = (0..rule.names.len()).filter(|field| rule.names[*field].is_some());
        // The field that leaves the fewest; a rule that names no type is of a table.
        let Some(field) = named.min_by_key(rivals) else { return self.all() };
        let mut beside: Vec<usize> =
            naming(field).flatten().chain(&self.any[field]).copied().collect();
        beside.sort_unstable();
        beside.dedup();
        beside
    }

    fn all(&self) -> Vec<usize> {
        let named = self.naming[TYPE].values().flatten().chain(&self.any[TYPE]);
        let all: BTreeSet<usize> = named.copied().collect();
        all.into_iter().collect()
    }
}

/// Whether a series may take some request before another one that takes it too. True in doubt: a
/// code of a table may become any code, and the days of a series may change.
#[must_use]
pub fn may_come_before(series: &SeriesDefinition, other: &SeriesDefinition) -> bool {
    let by_tables = series.refers_to_tables() || other.refers_to_tables();
    let others = rules_of(other);
    rules_of(series).iter().any(|rule| {
        let better = others.iter().filter(|other| rule.rank >= other.rank);
        better.into_iter().any(|other| by_tables || shared(&rule.names, &other.names).is_some())
    })
}

/// The rules of a series: one for the types that it lists, and one for the other types of its table
/// if it is a default with one.
pub(super) fn rules_of(definition: &SeriesDefinition) -> Vec<Rule<'_>> {
    let serves = &definition.serves;
    let (window, zone) = (Window::of(serves), zone_name(definition));
    let rule = |types| {
        let (projects, originators) = (names(&serves.projects), names(&serves.originators));
        let names = [projects, originators, types, names(&serves.sub_types)];
        let named = names.each_ref().map(Option::is_some);
        Rule { code: &definition.code, rank: Rank::new(serves.default, named), names, window, zone }
    };
    let mut rules = vec![rule(names(&serves.types))];
    if Series::takes_any_type(definition) {
        rules.push(rule(None));
    }
    rules
}

/// What a list of `serves` names.
fn names(codes: &[String]) -> NamedValues<&str> {
    (!codes.is_empty()).then(|| codes.iter().map(String::as_str).collect())
}

/// The requests that two rules both take.
fn shared<'a>(a: &Region<&'a str>, b: &Region<&'a str>) -> Option<Region<&'a str>> {
    let mut region: Region<&'a str> = Region::default();
    for (place, names) in region.iter_mut().enumerate() {
        *names = match (&a[place], &b[place]) {
            (None, other) | (other, None) => other.clone(),
            (Some(a), Some(b)) => Some(a & b),
        };
        if names.as_ref().is_some_and(BTreeSet::is_empty) {
            return None;
        }
    }
    Some(region)
}

/// No steps are left.
#[derive(Debug)]
pub(super) struct Spent;

/// Some of the region's requests that none of the rules takes. The remainder splits into ever more
/// pieces: `steps` are what may still be spent, one for each value examined.
///
/// # Errors
/// When they do not suffice.
pub(super) fn left_over<T: Copy + Ord>(
    region: Region<T>,
    rules: &[&Rule<'_, T>],
    steps: &mut u64,
) -> Result<Option<Region<T>>, Spent> {
    let Some((rule, rest)) = rules.split_first() else { return Ok(Some(region)) };
    let mut inside = region;
    for place in 0..inside.len() {
        let Some(named) = &rule.names[place] else { continue };
        let Some(values) = inside[place].take() else { return left_over(inside, rest, steps) };
        let looked_at = 1 + values.len() + named.len();
        *steps = steps.checked_sub(looked_at as u64).ok_or(Spent)?;
        let outside: BTreeSet<T> = &values - named;
        if !outside.is_empty() {
            let mut beside = inside.clone();
            beside[place] = Some(outside);
            if let Some(found) = left_over(beside, rest, steps)? {
                return Ok(Some(found));
            }
        }
        let both: BTreeSet<T> = &values & named;
        if both.is_empty() {
            return Ok(None);
        }
        inside[place] = Some(both);
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::testing::{NOW, definition, inputs};
    use super::super::{Inputs, References, VariableDefinition, choose};
    use super::*;

    /// A definition that serves lists of types, projects, originators and sub types.
    fn offer(code: &str, lists: [&[&str]; 4], default: bool) -> SeriesDefinition {
        let mut offer = definition();
        let own = |list: &[&str]| list.iter().map(ToString::to_string).collect();
        offer.code = code.into();
        offer.serves.types = own(lists[0]);
        offer.serves.projects = own(lists[1]);
        offer.serves.originators = own(lists[2]);
        offer.serves.sub_types = own(lists[3]);
        offer.serves.default = default;
        for name in ["ORIGINATOR", "SUB_TYPE"] {
            offer.variables.insert(name.into(), VariableDefinition::default());
        }
        offer
    }

    #[test]
    fn series_are_checked_together_as_requests_would_meet_them() {
        let sound = [
            offer("default", [&["RFI", "RFA"], &[], &[], &[]], true),
            offer("any", [&["RFA"], &[], &[], &[]], false),
            offer("p1", [&["RFA"], &["P1"], &[], &[]], false),
            offer("p2", [&["RFA"], &["P2"], &[], &[]], false),
            // Two defaults that no request meets, because `any` serves the type.
            offer("second", [&["RFA"], &[], &[], &[]], true),
        ];
        assert_eq!(check_rules(&sound), Ok(()));
        for (types, projects, default, rival) in [
            (["X", "RFA"], &[][..], false, "any"),
            (["X", "RFA"], &["P2", "P3"][..], false, "p2"),
            (["X", "RFI"], &[][..], true, "default"),
        ] {
            let new = offer("new", [&types, projects, &[], &[]], default);
            let error = check_rules(sound.iter().chain([&new])).expect_err(rival).to_string();
            let says = format!("series {rival} and new serve document type {:?}", types[1]);
            assert!(error.starts_with(&says), "{error}");
        }
    }

    #[test]
    fn two_defaults_for_any_type_of_a_table_tie_and_one_beside_listed_types_does_not() {
        let any = |code: &str, types: &[&str]| {
            let mut any = offer(code, [types, &[], &[], &[]], true);
            any.references =
                References { type_code: Some("types".into()), ..References::default() };
            any
        };
        assert_eq!(
            check_rules(&[any("a", &["X"]), offer("b", [&["Y"], &[], &[], &[]], true)]),
            Ok(())
        );
        let error = check_rules(&[any("a", &["X"]), any("b", &["Y"])]).expect_err("tie");
        assert!(error.to_string().contains("\"any other\""), "{error}");
    }

    /// A list of up to two names.
    fn some(of: &'static [&'static str]) -> impl Strategy<Value = Vec<&'static str>> {
        prop::sample::subsequence(of, 0..=2)
    }

    proptest! {
        /// Goal: exactly the sets of series that some request could not choose between are refused.
        /// Method: ask for every combination of names, a name in no list included.
        #[test]
        fn a_tie_is_found_exactly_where_a_request_would_meet_it(
            offers in prop::collection::vec(
                (
                    prop::sample::subsequence(&["T", "U"][..], 1..=2),
                    some(&["P", "Q"]), some(&["O", "R"]), some(&["1", "2"]),
                    prop::bool::weighted(0.3),
                ),
                0..6,
            ),
        ) {
            let definitions: Vec<SeriesDefinition> = offers
                .iter()
                .enumerate()
                .map(|(index, (types, projects, originators, sub_types, default))| {
                    let lists: [&[&str]; 4] = [types, projects, originators, sub_types];
                    offer(&format!("S{index}"), lists, *default)
                })
                .collect();
            let series: Vec<Series> =
                definitions.iter().map(|d| Series::compile(d.clone()).unwrap()).collect();
            let mut met = false;
            for type_code in ["T", "U"] {
                for project in ["P", "Q", "other"] {
                    for originator in ["O", "R", "other"] {
                        for sub_type in ["1", "2", "other"] {
                            let context = [("ORIGINATOR", originator), ("SUB_TYPE", sub_type)];
                            let request: Inputs = inputs(type_code, project, "", &context);
                            let chosen = choose(&series, &request, NOW);
                            met |= matches!(chosen, Err(RuleError::Ambiguous { .. }));
                        }
                    }
                }
            }
            prop_assert_eq!(check_rules(&definitions).is_err(), met);
        }
    }
}
