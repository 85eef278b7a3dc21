//! Every way in which small tables may stand, and every request in codes and in ids: brute force
//! for series that refer to tables.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;

use super::super::super::testing::{member, reference};
use super::super::super::*;

/// Tables, and what series refer to them by.
pub(super) const TABLES: [&str; 3] = ["projects", "types", "organizations"];

/// Ids of the rows of each table. Row `1` has the first three codes one after the other, row `2`
/// the rest.
const IDS: [&str; 2] = ["1", "2"];

/// The codes of each table, by row and time.
pub(super) type Codes = Vec<Vec<&'static str>>;

pub(super) fn codes() -> impl Strategy<Value = Codes> {
    let of = |codes: [&'static str; 6]| Just(codes.to_vec()).prop_shuffle();
    let projects = of(["1", "11", "-", "a", "1-1", "P"]);
    let types = of(["T", "U", "1", "11", "-", "a"]);
    let organizations = of(["1", "a", "11", "b", "aa", "1-a"]);
    (projects, types, organizations).prop_map(|(p, t, o)| vec![p, t, o])
}

/// What the tables know at the time of the proof: nothing, the first codes, or two of each row.
#[derive(Clone, Copy, Debug)]
pub(super) enum Known {
    Nothing,
    First,
    Second,
}

pub(super) fn known() -> impl Strategy<Value = Known> {
    prop::sample::select(vec![Known::Nothing, Known::First, Known::Second, Known::Second])
}

/// Who is a member of which project, by the indexes of their rows, at two times.
pub(super) type Members = [[[bool; 2]; 2]; 2];

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
    pub(super) fn data(self, codes: &Codes, members: [[bool; 2]; 2]) -> Arc<ReferenceData> {
        match self {
            Known::Nothing => Arc::default(),
            Known::First => data(codes, [0; 3], members),
            Known::Second => data(codes, [1; 3], members),
        }
    }

    /// Whether a code is in its table at the time of the proof.
    fn has(self, at: usize) -> bool {
        match self {
            Known::Nothing => false,
            Known::First => at.is_multiple_of(3),
            Known::Second => at % 3 < 2,
        }
    }

    /// What the tables may be from then on.
    pub(super) fn later(
        self,
        codes: &Codes,
        members: &[[[bool; 2]; 2]],
    ) -> Vec<Arc<ReferenceData>> {
        let first = if matches!(self, Known::Second) { 1 } else { 0 };
        let times = (0..8).map(|bits| [0, 1, 2].map(|table| first + (bits >> table & 1)));
        let at = |times| members.iter().map(move |members| data(codes, times, *members));
        times.flat_map(at).collect()
    }
}

/// A series with other tables than its own.
pub(super) fn bound(series: &Series, data: &Arc<ReferenceData>) -> Series {
    series.clone().with_reference(Arc::clone(data))
}

/// Requests in codes and in ids, in every combination; of each row the first so many codes.
fn requests(codes: &Codes, older: &[bool], early: usize) -> Vec<Inputs> {
    let date = Some("2025-01-01".to_owned());
    let ways = |table: usize| -> Vec<(Option<String>, Option<String>)> {
        let early = codes[table].chunks(3).flat_map(|row| &row[..early]);
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
                requests.extend(["1", "a"].map(|b| Inputs {
                    type_code: type_code.clone().unwrap_or_default(),
                    type_id: type_id.clone(),
                    project: project.clone(),
                    project_id: project_id.clone(),
                    date: date.clone(),
                    context: [(name.into(), value.clone()), ("B".into(), b.into())].into(),
                    ..Inputs::default()
                }));
            }
        }
    }
    requests
}

/// A number's scope and text.
type Shown = (String, String);

/// The numbers that each series gives when all are asked.
pub(super) struct Numbers<'s> {
    series: &'s [&'s Series],
    codes: Codes,
    requests: Vec<Inputs>,
    /// Of each series, counters and values by what shows them.
    taken: Vec<BTreeMap<Shown, BTreeSet<(String, u64)>>>,
}

impl<'s> Numbers<'s> {
    /// Of no world yet; `older`: the names of originators that requests have, `early`: how many
    /// codes of each row they name.
    fn of(series: &'s [&'s Series], codes: &Codes, older: &[bool], early: usize) -> Self {
        let mut older = older.to_vec();
        older.sort_unstable();
        older.dedup();
        let requests = requests(codes, &older, early);
        let taken = vec![BTreeMap::new(); series.len()];
        Numbers { series, codes: codes.clone(), requests, taken }
    }

    /// Those of worlds.
    pub(super) fn all(
        series: &'s [&'s Series],
        codes: &Codes,
        older: &[bool],
        worlds: &[Arc<ReferenceData>],
    ) -> Self {
        // The third code of a row is shown where a request names the row otherwise.
        let mut numbers = Numbers::of(series, codes, older, 2);
        for world in worlds {
            numbers.add(world);
        }
        numbers
    }

    fn add(&mut self, world: &Arc<ReferenceData>) {
        let bound: Vec<Series> = self.series.iter().map(|series| bound(series, world)).collect();
        let mut seen = BTreeSet::new();
        for request in &self.requests {
            let Ok(chosen) = choose(&bound, request) else { continue };
            let Ok(draft) = bound[chosen].draft(request, Timestamp::UNIX_EPOCH) else { continue };
            let (scope, key) = (draft.scope.clone(), draft.keys[0].to_string());
            let first = draft.mask.fill(&[1]).expect("fits");
            if !seen.insert((chosen, scope.clone(), key.clone(), first)) {
                continue;
            }
            for value in 1..=bound[chosen].serials()[0].max {
                let text = draft.mask.fill(&[value]).expect("fits");
                let taken = self.taken[chosen].entry((scope.clone(), text)).or_default();
                taken.insert((key.clone(), value));
            }
        }
    }

    /// A scope as another series knows it: by ids where that one has tables.
    fn meaning(&self, scope: &str, other: &Series) -> String {
        let of = |part: &str| {
            let (name, code) = part.split_once('=')?;
            let table = ["project", "type", "ORIGINATOR"].iter().position(|n| *n == name)?;
            let SeriesDefinition { references, variables, .. } = other.definition();
            let tabled = match table {
                0 => references.project.is_some(),
                1 => references.type_code.is_some(),
                _ => variables.get(name)?.reference.is_some(),
            };
            let at = self.codes[table].iter().position(|other| *other == code)?;
            tabled.then(|| format!("{name}_id={}", IDS[at / 3]))
        };
        let parts = scope.split(';').map(|part| of(part).unwrap_or_else(|| part.to_owned()));
        parts.collect::<Vec<_>>().join(";")
    }

    /// What is shown by two numbers, of the first series and another one, or of the only series.
    pub(super) fn collision(&self) -> Option<Shown> {
        if let [only] = &self.taken[..] {
            let mut shown = only.iter();
            return shown.find(|(_, taken)| taken.len() > 1).map(|(shown, _)| shown.clone());
        }
        (1..self.series.len()).find_map(|other| {
            let known = |of: usize, as_in: usize| {
                let shown = self.taken[of].keys();
                let known = shown.map(move |(scope, text)| {
                    (self.meaning(scope, self.series[as_in]), text.clone())
                });
                known.collect::<BTreeSet<Shown>>()
            };
            known(0, other).intersection(&known(other, 0)).next().cloned()
        })
    }
}

/// How many ways are tried in which codes come to rows that have none yet.
const WAYS: usize = 12;

/// Whether there is a collision in some world: with whatever codes rows come to have, and with
/// other memberships.
pub(super) fn is_seen(
    series: &[&Series],
    known: Known,
    codes: &Codes,
    older: &[bool],
    members: &[[[bool; 2]; 2]],
) -> bool {
    let members = [[[true; 2]; 2], [[true, false], [false, true]]].iter().chain(members);
    let members: Vec<_> = members.copied().collect();
    let mut runner = TestRunner::deterministic();
    (0..WAYS).any(|way| {
        let mut codes = codes.clone();
        for codes in codes.iter_mut().filter(|_| way > 0) {
            let is_free = |at: &usize| !known.has(*at);
            let free: Vec<usize> = (0..codes.len()).filter(is_free).collect();
            let shuffled = Just(free.clone()).prop_shuffle().new_tree(&mut runner);
            let shuffled = shuffled.expect("a shuffle").current();
            let before = codes.clone();
            for (from, to) in std::iter::zip(free, shuffled) {
                codes[to] = before[from];
            }
        }
        let mut numbers = Numbers::of(series, &codes, older, 3);
        known.later(&codes, &members).iter().any(|world| {
            numbers.add(world);
            numbers.collision().is_some()
        })
    })
}
