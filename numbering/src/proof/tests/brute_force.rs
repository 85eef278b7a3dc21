//! The proof against brute force: random series on alphabets so small that every request can be
//! rendered. proptest prints a failing case, smallest first, and keeps its seed.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use proptest::prelude::*;
use proptest::test_runner::TestRunner;

use super::super::super::testing::{definition, serial};
use super::super::super::*;
use super::super::alone::never_by_lengths;
use super::super::between::between;
use super::tally::{Bounds, Tally};

/// Days in different days, months, quarters and years.
const DATES: [&str; 5] = ["2025-01-01", "2025-01-02", "2025-04-01", "2026-01-01", "2026-10-11"];

/// Largest serial value.
const VALUE_MAX: u64 = 12;

/// Random series of each test.
const CASES: u32 = 300;

/// What is chosen at random for a series.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    pub(super) parts: Vec<&'static str>,
    pub(super) variables: [(&'static str, bool, usize); 2],
    pub(super) types: &'static [&'static str],
    pub(super) projects: &'static [&'static str],
    pub(super) scope: Vec<&'static str>,
    pub(super) counters: Vec<(Vec<&'static str>, Reset)>,
    pub(super) start: u64,
    pub(super) step: u64,
    pub(super) style: Style,
    pub(super) overflow: Overflow,
    /// Check characters, where they can read what stands before, and before which part.
    pub(super) check: (&'static str, prop::sample::Index),
}

/// What stands between serials.
const PARTS: [&str; 12] = [
    "-",
    "1",
    "{A}",
    "{A}",
    "{B}",
    "{PROJECT}",
    "{CORR_TYPE}",
    "{DATE:Q}",
    "{YEAR}",
    "{DATE:MMdd}",
    "{FY}",
    "{PHASE}",
];

pub(super) fn plan() -> impl Strategy<Value = Plan> {
    let part = prop::sample::select(PARTS.to_vec());
    let serials = prop_oneof![
        4 => prop::sample::select(vec![vec!["{SEQ:1}"], vec!["{SEQ:2}"], vec!["{SEQ}"]]),
        1 => Just(vec!["{SEQ:1:X}", "{SEQ:1:Y}"]),
    ];
    let alphabet = prop::sample::select(vec!["01", "ab", "1-", "a1"]);
    let variable = (alphabet, any::<bool>(), 1_usize..=2);
    let dimension = || prop::sample::subsequence(vec!["project", "type", "A", "B"], 0..=3);
    let reset = prop::sample::select(vec![
        Reset::None,
        Reset::None,
        Reset::None,
        Reset::Day,
        Reset::Week,
        Reset::Month,
        Reset::Quarter,
        Reset::Year,
        Reset::FiscalYear,
        Reset::Phase,
    ]);
    let lists = prop::sample::select(vec![&["T"][..], &["1", "11"], &["T", "U"]]);
    let projects = prop::sample::select(vec![&[][..], &["P"], &["1", "11"], &["-", "a"]]);
    let parts = (prop::collection::vec(part, 0..5), serials, any::<[prop::sample::Index; 2]>());
    let counters = prop::collection::vec((dimension(), reset), 2);
    let numbers = (
        prop::sample::select(vec![1_u64, 1, 1, 2, 3]),
        prop::sample::select(vec![1_u64, 1, 1, 3, 4]),
    );
    let figures = (
        prop::sample::select(vec![Style::Digits, Style::Digits, Style::Letters]),
        prop::sample::select(vec![Overflow::Refuse, Overflow::Widen]),
    );
    let check = prop::sample::select(vec!["", "luhn", "damm", "mod97-10", "mod37-36"]);
    let check = (check, any::<prop::sample::Index>());
    let rest = (lists, projects, dimension(), counters, numbers, figures, check);
    (parts, [variable.clone(), variable], rest).prop_map(
        |((parts, serials, at), variables, rest)| {
            let (types, projects, scope, counters, numbers, figures, check) = rest;
            let ((start, step), (style, overflow)) = (numbers, figures);
            let (mut parts, mut counters) = (parts, counters);
            for (serial, at) in std::iter::zip(&serials, at) {
                parts.insert(at.index(parts.len() + 1), serial);
            }
            counters.truncate(serials.len());
            Plan {
                parts,
                variables,
                types,
                projects,
                scope,
                counters,
                start,
                step,
                style,
                overflow,
                check,
            }
        },
    )
}

impl Plan {
    pub(super) fn series(&self, code: &str) -> Series {
        let strings = |list: &[&str]| list.iter().map(ToString::to_string).collect::<Vec<_>>();
        let mut definition = definition();
        definition.code = code.into();
        definition.template = self.parts.concat();
        definition.serves.types = strings(self.types);
        definition.serves.projects = strings(self.projects);
        definition.unique_within = strings(&self.scope);
        definition.fiscal_year_start = Some(4);
        for (name, (alphabet, fixed, width)) in ["A", "B"].into_iter().zip(self.variables) {
            let declared = VariableDefinition {
                required: true,
                alphabet: Some(alphabet.into()),
                width: fixed.then_some(width),
                width_max: (!fixed).then_some(width),
                ..VariableDefinition::default()
            };
            definition.variables.insert(name.into(), declared);
        }
        let names: &[&str] = if self.counters.len() == 2 { &["X", "Y"] } else { &["SEQ"] };
        let serials = names.iter().zip(&self.counters).map(|(name, (counter, reset))| {
            let (start, step, max) = (self.start, self.step, Some(VALUE_MAX));
            let (counter, reset) = (strings(counter), *reset);
            let (style, overflow) = (self.style, self.overflow);
            SerialDefinition { start, step, style, overflow, max, counter, reset, ..serial(name) }
        });
        definition.serials = serials.collect();
        if !self.check.0.is_empty() {
            let mut parts: Vec<String> = strings(&self.parts);
            let at = self.check.1.index(parts.len()) + 1;
            parts.insert(at, format!("{{CHECK:{}}}", self.check.0));
            let template = parts.concat();
            let checked = SeriesDefinition { template, ..definition.clone() };
            if let Ok(series) = Series::compile(checked) {
                return series;
            }
        }
        Series::compile(definition).unwrap_or_else(|error| panic!("{self:?}: {error}"))
    }

    /// The values that a variable can have.
    fn values(&self, variable: usize) -> Vec<String> {
        let (alphabet, fixed, width) = self.variables[variable];
        let ones: Vec<String> = alphabet.chars().map(String::from).collect();
        let twos = ones.iter().flat_map(|a| ones.iter().map(move |b| format!("{a}{b}")));
        let twos: Vec<String> = if width == 2 { twos.collect() } else { Vec::new() };
        if fixed && width == 2 { twos } else { ones.into_iter().chain(twos).collect() }
    }

    /// Every request.
    pub(super) fn requests(&self) -> Vec<Inputs> {
        let projects = if self.projects.is_empty() { &["P", "1"] } else { self.projects };
        let dated = self.parts.iter().any(|part| part.contains("DATE") || part.contains("Y"))
            || self.counters.iter().any(|(_, reset)| *reset != Reset::None);
        let dates = if dated { &DATES[..] } else { &DATES[..1] };
        let phased = self.parts.contains(&"{PHASE}")
            || self.counters.iter().any(|(_, reset)| *reset == Reset::Phase);
        let phases = if phased { &[Some("P"), Some("1")][..] } else { &[None] };
        let times = dates.iter().flat_map(|date| phases.iter().map(move |phase| (date, phase)));
        let mut requests = Vec::new();
        let (of_a, of_b) = (self.values(0), self.values(1));
        for (type_code, project) in
            self.types.iter().flat_map(|t| projects.iter().map(move |p| (t, p)))
        {
            for (a, b) in of_a.iter().flat_map(|a| of_b.iter().map(move |b| (a, b))) {
                requests.extend(times.clone().map(|(date, phase)| Inputs {
                    type_code: type_code.to_string(),
                    project: Some(project.to_string()),
                    date: Some(date.to_string()),
                    phase: phase.map(ToOwned::to_owned),
                    context: [("A".into(), a.clone()), ("B".into(), b.clone())].into(),
                    ..Inputs::default()
                }));
            }
        }
        requests
    }
}

/// A number's scope and text.
pub(super) type Shown = (String, String);

/// What it took: counter and value of each serial.
pub(super) type Taken = Vec<(CounterKey, u64)>;

/// Every number of a series.
pub(super) fn numbers(plan: &Plan, series: &Series) -> Vec<(Inputs, Shown, Taken)> {
    let values = |serial: &Serial| -> Vec<u64> {
        (serial.start..=serial.max).step_by(usize::try_from(serial.step).expect("small")).collect()
    };
    let values: Vec<Vec<u64>> = series.serials().iter().map(values).collect();
    let together: Vec<Vec<u64>> = match &values[..] {
        [one] => one.iter().map(|value| vec![*value]).collect(),
        [x, y] => x.iter().flat_map(|x| y.iter().take(4).map(move |y| vec![*x, *y])).collect(),
        other => panic!("{} serials", other.len()),
    };
    let mut numbers = Vec::new();
    for inputs in plan.requests() {
        let draft = series.draft(&inputs, Timestamp::UNIX_EPOCH).expect("a sound request");
        for values in &together {
            let text = draft.mask.fill(values).expect("fits");
            let taken = draft.keys.iter().cloned().zip(values.iter().copied()).collect();
            numbers.push((inputs.clone(), (draft.scope.clone(), text), taken));
        }
    }
    numbers
}

/// Renders what a refusal tells; whether it is a collision.
fn collides(ambiguity: &Ambiguity, series: &[&Series]) -> bool {
    let Ambiguity::Collision { first, second, text, scope, .. } = ambiguity else { return false };
    let render = |request: &CollidingRequest| {
        let of = series.iter().find(|series| series.definition().code == request.series);
        let of = of.expect("one of the series");
        let draft = of.draft(&request.inputs, Timestamp::UNIX_EPOCH).expect("a sound request");
        let values: Vec<u64> = request.values.iter().map(|(_, value)| *value).collect();
        assert_eq!((&draft.mask.fill(&values).expect("fits"), &draft.scope), (text, scope));
        let keys = draft.keys.into_iter().map(|key| (request.series.clone(), key));
        keys.zip(values).collect::<Vec<_>>()
    };
    render(first).into_iter().zip(render(second)).all(|(a, b)| a != b)
}

/// As many as `PROPTEST_CASES` asks for.
pub(super) fn cases_or(cases: u32) -> u32 {
    let asked = std::env::var("PROPTEST_CASES").ok();
    asked.map_or(cases, |asked| asked.parse().expect("PROPTEST_CASES is a number"))
}

pub(super) fn runner(cases: u32) -> TestRunner {
    let source_file = Some(file!());
    let cases = cases_or(cases);
    TestRunner::new(ProptestConfig { source_file, ..ProptestConfig::with_cases(cases) })
}

/// Two numbers of a series that collide, if there are such: what they show, and what they took.
fn collision(plan: &Plan, series: &Series) -> Option<(Shown, [Taken; 2])> {
    let mut seen: BTreeMap<Shown, Vec<Taken>> = BTreeMap::new();
    numbers(plan, series).into_iter().find_map(|(_, shown, taken)| {
        let before = seen.entry(shown.clone()).or_default();
        let other = before.iter().find(|other| are_apart(other, &taken)).cloned();
        before.push(taken.clone());
        other.map(|other| (shown, [other, taken]))
    })
}

/// Whether two numbers have no value of one counter in common.
pub(super) fn are_apart(one: &Taken, other: &Taken) -> bool {
    std::iter::zip(one, other).all(|(one, other)| one != other)
}

#[test]
fn what_is_proved_has_no_collision_and_what_is_refused_has_one() {
    let tally = Tally::default();
    let run = runner(CASES).run(&plan(), |plan| {
        let series = plan.series("random");
        match prove(&series, &[], &[]) {
            Err(Ambiguity::Unproven { limit, .. }) => {
                let is_seen = collision(&plan, &series).is_some();
                println!("{is_seen} {limit:?} {plan:?}");
                tally.untold(is_seen);
            }
            Err(ambiguity) => {
                prop_assert!(collides(&ambiguity, &[&series]), "{}", ambiguity);
                tally.told();
            }
            Ok(()) => {
                tally.proved();
                let collision = collision(&plan, &series);
                prop_assert!(collision.is_none(), "{:?}", collision);
            }
        }
        Ok(())
    });
    run.unwrap_or_else(|failure| panic!("{failure}"));
    tally.tells(CASES, &Bounds { untold: 5_000, unseen: 5_000 });
}

/// Goal: the search by lengths misses no collision, also where the first search would have found
/// it. Method: it is asked alone, about series that brute force finds collisions of.
#[test]
fn what_collides_is_never_proved_by_lengths() {
    let (proved, left) = (Cell::new(0), Cell::new(0));
    let run = runner(CASES / 4).run(&plan(), |mut plan| {
        // Texts of any length have more lengths than are quickly gone through.
        plan.parts.retain(|part| *part != "{PHASE}");
        plan.projects = if plan.projects.is_empty() { &["1", "11"] } else { plan.projects };
        let series = plan.series("random");
        let is_proved = never_by_lengths(&series);
        let count = if is_proved { &proved } else { &left };
        count.set(count.get() + 1);
        let collision = if is_proved { collision(&plan, &series) } else { None };
        prop_assert!(collision.is_none(), "{:?}", collision);
        Ok(())
    });
    run.unwrap_or_else(|failure| panic!("{failure}"));
    println!("{} proved by lengths, {} left", proved.get(), left.get());
    assert!(proved.get() > 2 && left.get() > 2);
}

#[test]
fn what_is_proved_is_read_back_or_has_readings_that_do_no_harm() {
    let run = runner(CASES).run(&(plan(), any::<prop::sample::Index>()), |(plan, at)| {
        let series = plan.series("random");
        if prove(&series, &[], &[]).is_err() {
            return Ok(());
        }
        let numbers = numbers(&plan, &series);
        let (_, (_, text), taken) = at.get(&numbers);
        match series.parse(text) {
            Ok(parsed) => {
                let read = parsed.serials.iter().map(|serial| serial.value);
                prop_assert!(read.eq(taken.iter().map(|(_, value)| *value)), "{}", text);
            }
            Err(error) => prop_assert!(matches!(error, ParseError::Ambiguous { .. }), "{error}"),
        }
        Ok(())
    });
    run.unwrap_or_else(|failure| panic!("{failure}"));
}

#[test]
fn two_series_that_are_proved_share_no_number() {
    let tally = Tally::default();
    let meet = (prop::bool::weighted(0.8), any::<prop::sample::Index>(), 0..4_usize);
    let run = runner(CASES).run(&(plan(), plan(), meet), |(one, mut two, (alike, at, more))| {
        two.scope.clone_from(&one.scope);
        // The texts of both meet, or nearly so.
        if alike {
            two = Plan { types: two.types, projects: two.projects, ..one.clone() };
            let more = ["", "-", "1", "{B}"][more];
            two.parts.insert(at.index(one.parts.len() + 1), more);
        }
        let (a, b) = (one.series("a"), two.series("b"));
        let both = [&a, &b];
        let serves = |inputs: &Inputs| choose(both, inputs);
        let common = || {
            let of = |plan: &Plan, series: &Series, choice: usize| {
                let all = numbers(plan, series).into_iter();
                let served = all.filter(|(inputs, ..)| serves(inputs) == Ok(choice));
                served.map(|(_, shown, _)| shown).collect::<BTreeSet<_>>()
            };
            of(&one, &a, 0).intersection(&of(&two, &b, 1)).next().cloned()
        };
        // Whether each is proved by itself is not asked here.
        match between(&a, &b, [&both; 2], &[], None) {
            Err(Ambiguity::Unproven { limit, .. }) => {
                let is_seen = common().is_some();
                println!("{is_seen} {limit:?} {one:?} {two:?}");
                tally.untold(is_seen);
            }
            Err(ambiguity) => {
                prop_assert!(collides(&ambiguity, &both), "{}", ambiguity);
                let Ambiguity::Collision { first, second, .. } = ambiguity else { return Ok(()) };
                prop_assert_eq!((serves(&first.inputs), serves(&second.inputs)), (Ok(0), Ok(1)));
                tally.told();
            }
            Ok(()) => {
                tally.proved();
                let common = common();
                prop_assert!(common.is_none(), "{:?}", common);
            }
        }
        Ok(())
    });
    run.unwrap_or_else(|failure| panic!("{failure}"));
    tally.tells(CASES, &Bounds { untold: 1_000, unseen: 50 });
}
