//! The proof against brute force where series refer to tables: rows are renamed between two
//! requests, requests are sent in codes and in ids, and the tables know as much as they may at the
//! time of the proof. proptest prints a failing case, smallest first, and keeps its seed.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use proptest::prelude::*;
use proptest::test_runner::TestRunner;

use super::super::super::testing::{definition, member, reference, serial};
use super::super::super::*;
use super::super::between::between;
use super::brute_force::cases_or;
use super::told::collides;

/// Random plans of each test.
const CASES: u32 = 200;

/// Largest serial value.
const VALUE_MAX: u64 = 12;

/// Tables, and what series refer to them by.
pub(super) const TABLES: [&str; 3] = ["projects", "types", "organizations"];

/// Ids of the rows of each table. Row `1` has the first three codes one after the other, row `2`
/// the rest.
const IDS: [&str; 2] = ["1", "2"];

/// The codes of each table, by row and time.
type Codes = Vec<Vec<&'static str>>;

fn codes() -> impl Strategy<Value = Codes> {
    let of = |codes: [&'static str; 6]| Just(codes.to_vec()).prop_shuffle();
    let projects = of(["1", "11", "-", "a", "1-1", "P"]);
    let types = of(["T", "U", "1", "11", "-", "a"]);
    let organizations = of(["1", "a", "11", "b", "aa", "1-a"]);
    (projects, types, organizations).prop_map(|(p, t, o)| vec![p, t, o])
}

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

/// What the tables know at the time of the proof: nothing, the first codes, or two of each row.
#[derive(Clone, Copy, Debug)]
enum Known {
    Nothing,
    First,
    Second,
}

fn known() -> impl Strategy<Value = Known> {
    prop::sample::select(vec![Known::Nothing, Known::First, Known::Second, Known::Second])
}

/// Who is a member of which project, by the indexes of their rows, at two times.
type Members = [[[bool; 2]; 2]; 2];

/// Reference data where each table stands at a time of its own.
fn data(codes: &Codes, times: [usize; 3], members: [[bool; 2]; 2]) -> Arc<ReferenceData> {
    let mut rows = Vec::new();
    for (table, (codes, time)) in TABLES.iter().zip(codes.iter().zip(times)) {
        for (row, id) in IDS.iter().enumerate() {
            let had = &codes[row * 3..=row * 3 + time];
            let former_codes = had[..time].iter().map(ToString::to_string).collect();
            rows.push(ReferenceRow { former_codes, ..reference(table, id, had[time], true) });
        }
    }
    let pairs = (0..2).flat_map(|m| (0..2).map(move |p| (m, p)));
    let are = pairs.filter(|(m, p)| members[*m][*p]);
    let memberships = are.map(|(m, p)| member((TABLES[2], IDS[m]), (TABLES[0], IDS[p])));
    Arc::new(ReferenceData::new(rows, memberships.collect::<Vec<_>>()))
}

impl Known {
    fn data(self, codes: &Codes) -> Arc<ReferenceData> {
        match self {
            Known::Nothing => Arc::default(),
            Known::First => data(codes, [0; 3], [[false; 2]; 2]),
            Known::Second => data(codes, [1; 3], [[false; 2]; 2]),
        }
    }

    /// What the tables may be from then on.
    fn later(self, codes: &Codes, members: &[[[bool; 2]; 2]]) -> Vec<Arc<ReferenceData>> {
        let first = if matches!(self, Known::Second) { 1 } else { 0 };
        let times = (0..8).map(|bits| [0, 1, 2].map(|table| first + (bits >> table & 1)));
        let at = |times| members.iter().map(move |members| data(codes, times, *members));
        times.flat_map(at).collect()
    }
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

/// A series with other tables than its own.
pub(super) fn bound(series: &Series, data: &Arc<ReferenceData>) -> Series {
    let again = Series::compile(series.definition().clone()).expect("compiles");
    again.with_reference(Arc::clone(data))
}

/// Requests in codes and in ids, in every combination.
fn requests(codes: &Codes, older: &[bool]) -> Vec<Inputs> {
    let date = Some("2025-01-01".to_owned());
    let ways = |table: usize| -> Vec<(Option<String>, Option<String>)> {
        // The third code of a row is shown where a request names the row otherwise.
        let early = codes[table].chunks(3).flat_map(|row| &row[..2]);
        let by_code = early.map(|code| (Some(code.to_string()), None));
        by_code.chain(IDS.map(|id| (None, Some(id.to_owned())))).collect()
    };
    let (mut projects, types, organizations) = (ways(0), ways(1), ways(2));
    projects.push((None, None));
    let mut requests = Vec::new();
    for (project, project_id) in &projects {
        for (type_code, type_id) in &types {
            let named =
                older.iter().flat_map(|older| organizations.iter().map(move |o| (o, older)));
            for ((by_code, by_id), older) in named {
                let name = match (by_code.is_some(), older) {
                    (true, false) => "ORIGINATOR",
                    (true, true) => "ORG_CODE",
                    (false, false) => "originator_id",
                    (false, true) => "org_id",
                };
                let value = by_code.as_ref().or(by_id.as_ref()).expect("one of them");
                requests.push(Inputs {
                    type_code: type_code.clone().unwrap_or_default(),
                    type_id: type_id.clone(),
                    project: project.clone(),
                    project_id: project_id.clone(),
                    date: date.clone(),
                    context: [(name.into(), value.clone()), ("B".into(), "1".into())].into(),
                    ..Inputs::default()
                });
            }
        }
    }
    requests
}

/// A number's scope and text.
type Shown = (String, String);

/// Every number that each series gives when all are asked, with its counter and value.
fn numbers(
    series: &[&Series],
    requests: &[Inputs],
    worlds: &[Arc<ReferenceData>],
) -> Vec<BTreeMap<Shown, BTreeSet<(String, u64)>>> {
    let mut numbers = vec![BTreeMap::<Shown, BTreeSet<(String, u64)>>::new(); series.len()];
    for world in worlds {
        let bound: Vec<Series> = series.iter().map(|series| bound(series, world)).collect();
        let mut seen = BTreeSet::new();
        for request in requests {
            let Ok(chosen) = choose(&bound, request) else { continue };
            for b in ["1", "a"] {
                let mut request = request.clone();
                request.context.insert("B".into(), b.into());
                let Ok(draft) = bound[chosen].draft(&request, Timestamp::UNIX_EPOCH) else {
                    continue;
                };
                let key = draft.keys[0].to_string();
                let first = draft.mask.fill(&[1]).expect("fits");
                if !seen.insert((chosen, draft.scope.clone(), key.clone(), first)) {
                    continue;
                }
                for value in 1..=bound[chosen].serials()[0].max {
                    let text = draft.mask.fill(&[value]).expect("fits");
                    let taken = numbers[chosen].entry((draft.scope.clone(), text)).or_default();
                    taken.insert((key.clone(), value));
                }
            }
        }
    }
    numbers
}

/// What became of random plans.
#[derive(Default)]
struct Tally {
    proved: Cell<usize>,
    refused: Cell<usize>,
    unproven: Cell<usize>,
}

impl Tally {
    fn count(cell: &Cell<usize>) {
        cell.set(cell.get() + 1);
    }

    /// A test that proves nothing, or refuses nothing, tells nothing. One of `one_in` may be
    /// neither: no pair is told that takes a renaming between its two requests.
    fn tells(&self, one_in: usize) {
        let (proved, refused) = (self.proved.get(), self.refused.get());
        let unproven = self.unproven.get();
        println!("{proved} proved, {refused} refused, {unproven} unproven");
        assert!(unproven * one_in <= cases_or(CASES) as usize, "{unproven} unproven");
        assert!(proved > 20 && refused > 20, "{proved} proved, {refused} refused");
    }
}

fn runner() -> TestRunner {
    let source_file = Some(file!());
    TestRunner::new(ProptestConfig { source_file, ..ProptestConfig::with_cases(cases_or(CASES)) })
}

#[test]
fn what_is_proved_has_no_collision_whatever_is_renamed() {
    let tally = Tally::default();
    let plans = (plan(), scope(), codes(), known(), any::<Members>());
    let run = runner().run(&plans, |(plan, scope, codes, known, members)| {
        let series = bound(&plan.series("random", &codes, &scope), &known.data(&codes));
        match prove(&series, &[], &[]) {
            Err(Ambiguity::Unproven { limit, .. }) => {
                println!("UNPROVEN {limit:?} {known:?} {plan:?} {scope:?} {codes:?}");
                Tally::count(&tally.unproven);
            }
            Err(ambiguity) => {
                prop_assert!(collides(&ambiguity, &[&series], false), "{}", ambiguity);
                Tally::count(&tally.refused);
            }
            Ok(()) => {
                Tally::count(&tally.proved);
                let worlds = known.later(&codes, &members);
                for (shown, taken) in
                    &numbers(&[&series], &requests(&codes, &[plan.older]), &worlds)[0]
                {
                    prop_assert!(taken.len() == 1, "{:?} {:?}", shown, taken);
                }
            }
        }
        Ok(())
    });
    run.unwrap_or_else(|failure| panic!("{failure}"));
    tally.tells(8);
}

#[test]
fn two_series_that_are_proved_share_no_number_whatever_is_renamed() {
    let tally = Tally::default();
    let world = (scope(), codes(), known(), any::<Members>());
    let meet = (prop::bool::weighted(0.8), any::<prop::sample::Index>(), "[-1]?");
    let plans = (plan(), plan(), plan(), meet, world);
    let run = runner().run(&plans, |(one, mut two, three, (alike, at, more), world)| {
        let (scope, codes, known, members) = world;
        let data = known.data(&codes);
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
        // Whether each is proved by itself is not asked here.
        let beside = |other: &Series| between(all[0], other, &all, &[]);
        match beside(all[1]).and_then(|()| beside(all[2])) {
            Err(Ambiguity::Unproven { limit, .. }) => {
                println!("UNPROVEN {limit:?} {known:?} {scope:?} {codes:?}");
                println!("  {one:?}\n  {two:?}\n  {three:?}");
                Tally::count(&tally.unproven);
            }
            Err(ambiguity) => {
                prop_assert!(collides(&ambiguity, &all, true), "{}", ambiguity);
                Tally::count(&tally.refused);
            }
            Ok(()) => {
                Tally::count(&tally.proved);
                let looked_at = [&one, &two, &three].iter().any(|plan| plan.membership);
                let worlds = known.later(&codes, &members[..if looked_at { 2 } else { 1 }]);
                let mut older = [one.older, two.older, three.older].to_vec();
                older.sort_unstable();
                older.dedup();
                let numbers = numbers(&all, &requests(&codes, &older), &worlds);
                for other in &numbers[1..] {
                    let common = numbers[0].keys().find(|shown| other.contains_key(*shown));
                    prop_assert!(common.is_none(), "{:?}", common);
                }
            }
        }
        Ok(())
    });
    run.unwrap_or_else(|failure| panic!("{failure}"));
    tally.tells(2);
}
