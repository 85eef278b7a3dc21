//! The proof against brute force where series refer to tables: rows are renamed between two
//! requests, requests are sent in codes and in ids, and the tables know as much as they may at the
//! time of the proof. proptest prints a failing case, smallest first, and keeps its seed.

use proptest::prelude::*;
use proptest::test_runner::TestRunner;

use super::super::super::testing::{definition, serial};
use super::super::super::*;
use super::super::between::between;
use super::brute_force::cases_or;
use super::table_worlds::{Codes, Members, Numbers, TABLES, bound, codes, is_seen, known};
use super::tally::{Bounds, Tally};
use super::told::collides;

/// Random series.
const CASES: u32 = 200;

/// Random pairs of series, each of which takes four times as long.
const PAIRS: u32 = 100;

/// Largest serial value.
const VALUE_MAX: u64 = 12;

/// What is chosen at random for a series.
#[derive(Clone, Debug)]
struct Plan {
    parts: Vec<&'static str>,
    tables: [bool; 3],
    membership: bool,
    /// Indexes of the codes that `serves` lists: projects, types, originators.
    lists: [Vec<usize>; 3],
    default: bool,
    /// Whether its originator has the older name.
    older: bool,
    counter: Vec<&'static str>,
    excluded: Option<&'static str>,
}

fn plan() -> impl Strategy<Value = Plan> {
    let part =
        prop::sample::select(vec!["-", "1", "{ORIGINATOR}", "{B:1}", "{PROJECT}", "{CORR_TYPE}"]);
    let figure = prop::sample::select(vec!["{SEQ:1}", "{SEQ:2}", "{SEQ}"]);
    let parts = (prop::collection::vec(part, 0..4), figure, any::<prop::sample::Index>());
    let counter = prop::sample::subsequence(vec!["project", "type", "ORIGINATOR", "B"], 0..=3);
    // Mostly codes that are known early.
    let indexes = prop_oneof![
        3 => Just(vec![0, 3]),
        2 => Just(vec![0, 1, 3, 4]),
        1 => Just((0..6).collect()),
    ];
    let list = |least: usize| {
        let some = move |indexes: Vec<usize>| prop::sample::subsequence(indexes, least..=2);
        indexes.clone().prop_flat_map(some)
    };
    let few = || prop_oneof![2 => Just(Vec::new()), 1 => list(1)];
    let tables = prop_oneof![3 => Just([true; 3]), 2 => any::<[bool; 3]>()];
    let excluded = prop::sample::select(vec![None, Some("-"), Some("1")]);
    let lists = (few(), list(1), few());
    let flags = (any::<bool>(), prop::bool::weighted(0.4), prop::bool::weighted(0.3));
    let rest = (tables, flags, lists, counter, excluded);
    (parts, rest).prop_map(|((mut parts, figure, at), rest)| {
        let (tables, flags, (projects, types, originators), counter, excluded) = rest;
        let (membership, default, older) = flags;
        parts.insert(at.index(parts.len() + 1), figure);
        let lists = [projects, types, originators];
        Plan { parts, tables, membership, lists, default, older, counter, excluded }
    })
}

fn scope() -> impl Strategy<Value = Vec<&'static str>> {
    prop::sample::subsequence(vec!["project", "type", "ORIGINATOR"], 0..=2)
}

impl Plan {
    fn series(&self, code: &str, codes: &Codes, scope: &[&str]) -> Series {
        let table = |index: usize| self.tables[index].then(|| TABLES[index].to_owned());
        let listed = |index: usize| -> Vec<String> {
            self.lists[index].iter().map(|at| codes[index][*at].to_owned()).collect()
        };
        let mut definition = definition();
        definition.code = code.into();
        let name = if self.older { "ORG_CODE" } else { "ORIGINATOR" };
        definition.template = self.parts.concat().replace("ORIGINATOR", name);
        let named = |list: &[&str]| {
            let name = |dimension: &&str| dimension.replace("ORIGINATOR", name);
            list.iter().map(name).collect::<Vec<_>>()
        };
        definition.unique_within = named(scope);
        let membership = self.membership && self.tables[0] && self.tables[2];
        definition.references = References { project: table(0), type_code: table(1), membership };
        definition.serves = Serves {
            projects: listed(0),
            types: listed(1),
            originators: listed(2),
            default: self.default,
            ..Serves::default()
        };
        let originator = VariableDefinition {
            required: true,
            reference: table(2),
            excluded: self.excluded.map(str::to_owned),
            width_max: Some(3),
            ..VariableDefinition::default()
        };
        let b = VariableDefinition {
            required: true,
            alphabet: Some("1a".into()),
            ..VariableDefinition::default()
        };
        definition.variables = [(name.into(), originator), ("B".into(), b)].into();
        let (max, counter) = (Some(VALUE_MAX), named(&self.counter));
        definition.serials = vec![SerialDefinition { max, counter, ..serial("SEQ") }];
        Series::compile(definition).unwrap_or_else(|error| panic!("{self:?}: {error}"))
    }
}

fn runner(cases: u32) -> TestRunner {
    let source_file = Some(file!());
    TestRunner::new(ProptestConfig { source_file, ..ProptestConfig::with_cases(cases_or(cases)) })
}

#[test]
fn what_is_proved_has_no_collision_whatever_is_renamed() {
    let tally = Tally::default();
    let plans = (plan(), scope(), codes(), known(), any::<Members>());
    let run = runner(CASES).run(&plans, |(plan, scope, codes, known, members)| {
        let series = bound(&plan.series("random", &codes, &scope), &known.data(&codes, members[0]));
        let (all, older) = ([&series], [plan.older]);
        match prove(&series, &[], &[]) {
            Err(Ambiguity::Unproven { limit, .. }) => {
                let is_seen = is_seen(&all, known, &codes, &older, &members);
                println!("{is_seen} {limit:?} {known:?} {plan:?} {scope:?} {codes:?}");
                tally.untold(is_seen);
            }
            Err(ambiguity) => {
                prop_assert!(collides(&ambiguity, &all, false), "{}", ambiguity);
                tally.told();
            }
            Ok(()) => {
                tally.proved();
                let worlds = known.later(&codes, &members);
                let numbers = Numbers::all(&all, &codes, &older, &worlds);
                prop_assert!(numbers.collision().is_none(), "{:?}", numbers.collision());
            }
        }
        Ok(())
    });
    run.unwrap_or_else(|failure| panic!("{failure}"));
    tally.tells(CASES, &Bounds { untold: 5_000, unseen: 5_000 });
}

#[test]
fn two_series_that_are_proved_share_no_number_whatever_is_renamed() {
    let tally = Tally::default();
    let world = (scope(), codes(), known(), any::<Members>());
    let meet = (prop::bool::weighted(0.8), any::<prop::sample::Index>(), "[-1]?");
    let plans = (plan(), plan(), plan(), meet, world);
    let run = runner(PAIRS).run(&plans, |(one, mut two, three, (alike, at, more), world)| {
        let (scope, codes, known, members) = world;
        let data = known.data(&codes, members[0]);
        let series = |code: &str, plan: &Plan| bound(&plan.series(code, &codes, &scope), &data);
        // The texts of the first two meet, or nearly so.
        two.parts.clone_from(&one.parts);
        let more = ["", "-", "1"].into_iter().find(|text| *text == more);
        two.parts.insert(at.index(one.parts.len() + 1), more.unwrap_or_default());
        if alike {
            two.tables = one.tables;
        }
        let all = [series("a", &one), series("b", &two), series("c", &three)];
        let all = [&all[0], &all[1], &all[2]];
        let older = [one.older, two.older, three.older];
        // Whether each is proved by itself is not asked here.
        let beside = |other: &Series| between(all[0], other, [&all; 2], &[], None);
        match beside(all[1]).and_then(|()| beside(all[2])) {
            Err(Ambiguity::Unproven { limit, .. }) => {
                let is_seen = is_seen(&all, known, &codes, &older, &members);
                println!("{is_seen} {limit:?} {known:?} {scope:?} {codes:?}");
                println!("  {one:?}\n  {two:?}\n  {three:?}");
                tally.untold(is_seen);
            }
            Err(ambiguity) => {
                prop_assert!(collides(&ambiguity, &all, true), "{}", ambiguity);
                tally.told();
            }
            Ok(()) => {
                tally.proved();
                let looked_at = [&one, &two, &three].iter().any(|plan| plan.membership);
                let worlds = known.later(&codes, &members[..if looked_at { 2 } else { 1 }]);
                let numbers = Numbers::all(&all, &codes, &older, &worlds);
                prop_assert!(numbers.collision().is_none(), "{:?}", numbers.collision());
            }
        }
        Ok(())
    });
    run.unwrap_or_else(|failure| panic!("{failure}"));
    tally.tells(PAIRS, &Bounds { untold: 25, unseen: 10 });
}
