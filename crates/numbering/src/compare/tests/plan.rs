//! Random series on alphabets so small that every request can be listed, and tables whose rows are
//! renamed.

use std::collections::BTreeMap;
use std::sync::Arc;

use proptest::prelude::*;
use proptest::sample::Index;

use super::super::super::testing::{definition, member, reference, serial};
use super::super::super::*;

/// Days in different days, months, quarters and years.
const DATES: [&str; 5] = ["2025-01-01", "2025-01-02", "2025-04-01", "2026-01-01", "2026-10-11"];

/// Largest serial value.
const VALUE_MAX: u64 = 12;

/// The text between serials.
const PARTS: [&str; 14] = [
    "-",
    "1",
    "{ORIGINATOR}",
    "{ORIGINATOR}",
    "{B}",
    "{B}",
    "{PROJECT}",
    "{CORR_TYPE}",
    "{DATE:Q}",
    "{YEAR}",
    "{DATE:MMdd}",
    "{FY}",
    "{PHASE}",
    "{SNOWFLAKE}",
];

/// Tables, and the codes that their rows may have.
const TABLES: [(&str, [&str; 5]); 3] = [
    ("projects", ["P", "1", "11", "-", "a"]),
    ("types", ["T", "U", "1", "11", "-"]),
    ("parties", ["1", "a", "11", "01", "aa"]),
];

/// The tables at two times: each has two rows, which are renamed in between.
pub(super) type Worlds = [Arc<ReferenceData>; 2];

/// What is chosen at random for a series.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    pub(super) parts: Vec<&'static str>,
    pub(super) variables: [Declared; 2],
    pub(super) types: &'static [&'static str],
    pub(super) projects: &'static [&'static str],
    pub(super) originators: bool,
    pub(super) default: bool,
    /// From which day on and before which it serves; none: dates play no part.
    pub(super) days: Option<Days>,
    /// Whether projects, types and originators are rows of tables.
    pub(super) tables: [bool; 3],
    /// Whether projects follow from memberships, if both are rows.
    pub(super) membership: bool,
    pub(super) scope: Vec<&'static str>,
    pub(super) counters: Vec<(Vec<&'static str>, Reset)>,
    pub(super) fiscal_year_start: u8,
    /// Start and step.
    pub(super) progression: (u64, u64),
    pub(super) format: (Style, Overflow),
    pub(super) check: (&'static str, Index),
}

/// The first day that a series serves, and the first that it does not serve any more.
pub(super) type Days = [Option<&'static str>; 2];

/// A variable: its alphabet, its width and whether that is fixed, and whether it is required, has a
/// default, or neither.
pub(super) type Declared = (&'static str, usize, bool, Option<bool>);

pub(super) fn one_of<T: Clone + std::fmt::Debug + 'static>(
    all: &[T],
) -> impl Strategy<Value = T> + use<T> {
    prop::sample::select(all.to_vec())
}

pub(super) fn plan() -> impl Strategy<Value = Plan> {
    let needs = || one_of(&[Some(true), Some(true), Some(false), None]);
    let variable = || (one_of(&["01", "ab", "1-", "a1", "1"]), 1_usize..=2, any::<bool>(), needs());
    let serials =
        one_of(&[vec!["{SEQ:1}"], vec!["{SEQ:2}"], vec!["{SEQ}"], vec!["{SEQ:1:X}", "{SEQ:1:Y}"]]);
    let dimension = || prop::sample::subsequence(vec!["project", "type", "ORIGINATOR", "B"], 0..=3);
    let reset = one_of(&[
        Reset::None,
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
    let numbers = (
        one_of(&[1_u8, 4]),
        (one_of(&[1_u64, 1, 1, 2, 3]), one_of(&[1_u64, 1, 1, 3, 4])),
        (
            one_of(&[Style::Digits, Style::Digits, Style::Letters]),
            one_of(&[Overflow::Refuse, Overflow::Widen]),
        ),
        (one_of(&["", "", "", "luhn", "mod97-10"]), any::<Index>()),
    );
    let serves = (
        one_of(&[&["T"][..], &["1", "11"], &["T", "U"]]),
        one_of(&[&[][..], &["P"], &["1", "11"], &["-", "a"]]),
        [prop::bool::weighted(0.2), prop::bool::weighted(0.2)],
        prop_oneof![2 => Just([false; 3]), 1 => any::<[bool; 3]>(), 1 => Just([true; 3])],
        (any::<bool>(), days()),
    );
    let parts = (prop::collection::vec(one_of(&PARTS), 0..5), serials, any::<[Index; 2]>());
    let counters = prop::collection::vec((dimension(), reset), 2);
    let rest = (serves, dimension(), counters, numbers);
    (parts, [variable(), variable()], rest).prop_map(
        |((mut parts, serials, at), variables, rest)| {
            let (serves, scope, mut counters, numbers) = rest;
            let (types, projects, [originators, default], tables, (membership, days)) = serves;
            let (fiscal_year_start, progression, format, check) = numbers;
            for (serial, at) in std::iter::zip(&serials, at) {
                parts.insert(at.index(parts.len() + 1), serial);
            }
            counters.truncate(serials.len());
            Plan {
                parts,
                variables,
                types,
                projects,
                originators,
                default,
                days,
                tables,
                membership,
                scope,
                counters,
                fiscal_year_start,
                progression,
                format,
                check,
            }
        },
    )
}

/// Mostly all days.
fn days() -> impl Strategy<Value = Option<Days>> {
    let turn = "2026-01-01";
    let some = [[None, Some(turn)], [Some(turn), None], [Some("2025-01-02"), Some(turn)]];
    prop_oneof![4 => Just(None), 1 => one_of(&some).prop_map(Some)]
}

pub(super) fn worlds() -> impl Strategy<Value = Worlds> {
    let codes = TABLES.map(|(_, codes)| Just(codes.to_vec()).prop_shuffle());
    (codes, any::<[[bool; 4]; 2]>(), any::<bool>()).prop_map(|(codes, members, grows)| {
        [0, 1].map(|time| {
            let rows = std::iter::zip(TABLES, &codes).flat_map(|((table, _), codes)| {
                let renamed = [("1", 0), ("2", 2)].map(|(id, row)| {
                    let former_codes = strings(&codes[row..row + time]);
                    ReferenceRow { former_codes, ..reference(table, id, codes[row + time], true) }
                });
                // A code without a row gets one.
                let new = (grows && time == 1).then(|| reference(table, "3", codes[4], true));
                renamed.into_iter().chain(new)
            });
            let pairs = [("1", "1"), ("1", "2"), ("2", "1"), ("2", "2")];
            let members = std::iter::zip(pairs, members[time]).filter(|(_, is_member)| *is_member);
            let members = members.map(|((id, of), _)| member(("parties", id), ("projects", of)));
            Arc::new(ReferenceData::new(rows.collect::<Vec<_>>(), members.collect::<Vec<_>>()))
        })
    })
}

pub(super) fn strings(list: &[&str]) -> Vec<String> {
    list.iter().map(ToString::to_string).collect()
}

impl Plan {
    pub(super) fn series(&self, code: &str) -> Series {
        let mut series = SeriesDefinition { code: code.into(), ..definition() };
        let table = |at: usize| self.tables[at].then(|| TABLES[at].0.to_owned());
        let membership = self.membership && self.tables[0] && self.tables[2];
        series.references = References { project: table(0), type_code: table(1), membership };
        series.serves.types = strings(self.types);
        series.serves.projects = strings(self.projects);
        series.serves.default = self.default;
        let [from, before] = self.days.unwrap_or_default();
        series.serves.dated_from = from.map(Into::into);
        series.serves.dated_before = before.map(Into::into);
        series.unique_within = strings(&self.scope);
        series.fiscal_year_start = Some(self.fiscal_year_start);
        for (index, name) in ["ORIGINATOR", "B"].into_iter().enumerate() {
            let (alphabet, width, fixed, needs) = self.variables[index];
            let reference = table(2).filter(|_| index == 0);
            let declared = VariableDefinition {
                required: needs == Some(true),
                default: (needs == Some(false)).then(|| self.given(index)[0].clone()),
                alphabet: Some(alphabet.into()),
                width: fixed.then_some(width),
                width_max: (!fixed).then_some(width),
                reference,
                ..VariableDefinition::default()
            };
            series.variables.insert(name.into(), declared);
        }
        if self.originators {
            series.serves.originators = self.given(0).into_iter().take(1).collect();
        }
        let names: &[&str] = if self.counters.len() == 2 { &["X", "Y"] } else { &["SEQ"] };
        let serials = names.iter().zip(&self.counters).map(|(name, (counter, reset))| {
            let ((start, step), (style, overflow)) = (self.progression, self.format);
            let (counter, reset, max) = (strings(counter), *reset, Some(VALUE_MAX));
            SerialDefinition { start, step, style, overflow, max, counter, reset, ..serial(name) }
        });
        series.serials = serials.collect();
        let mut parts = strings(&self.parts);
        let (mut ids, check) = (0, format!("{{CHECK:{}}}", self.check.0));
        // A number has one id, and a check is where it can read all.
        parts.retain(|part| {
            ids += u32::from(part == "{SNOWFLAKE}");
            part != "{SNOWFLAKE}" || ids == 1
        });
        series.template = parts.concat();
        parts.insert(self.check.1.index(parts.len()) + 1, check);
        let checked = SeriesDefinition { template: parts.concat(), ..series.clone() };
        let compiled = Series::compile(checked).or_else(|_| Series::compile(series));
        compiled.unwrap_or_else(|error| panic!("{self:?}: {error}"))
    }

    /// The values that a variable may be given.
    fn given(&self, variable: usize) -> Vec<String> {
        let (alphabet, width, fixed, _) = self.variables[variable];
        let ones: Vec<String> = alphabet.chars().map(String::from).collect();
        let twos = ones.iter().flat_map(|a| ones.iter().map(move |b| format!("{a}{b}")));
        let twos: Vec<String> = if width == 2 { twos.collect() } else { Vec::new() };
        if fixed && width == 2 { twos } else { ones.into_iter().chain(twos).collect() }
    }

    /// Every request that may be sent in a world; some of them are refused.
    pub(super) fn requests(&self, world: &ReferenceData) -> Vec<Inputs> {
        let has = |what: &str| self.parts.iter().any(|part| part.contains(what));
        let resets = |phase: bool| {
            let mut resets = self.counters.iter().map(|(_, reset)| *reset);
            resets.any(|reset| reset != Reset::None && (reset == Reset::Phase) == phase)
        };
        let dated = has("DATE") || has("Y") || resets(false) || self.days.is_some();
        let dates = if dated { &DATES[..] } else { &DATES[..1] };
        let phases: &[_] =
            if has("PHASE") || resets(true) { &[Some("P"), Some("1")] } else { &[None] };
        let of_table = |at: usize, otherwise: &[&str]| match self.tables[at] {
            true => world.rows(TABLES[at].0).map(|row| row.code.clone()).collect(),
            false => strings(otherwise),
        };
        let projects =
            of_table(0, if self.projects.is_empty() { &["P", "1"] } else { self.projects });
        let types = of_table(1, self.types);
        // By their ids, and not at all, if that makes a difference.
        let by_id = |at: usize| self.tables[at].then(|| (String::new(), Some("1".to_owned())));
        let coded = |codes: Vec<String>| codes.into_iter().map(|code| (code, None));
        let none = self.membership.then(|| (String::new(), None));
        let projects: Vec<_> = coded(projects).chain(by_id(0)).chain(none).collect();
        let types: Vec<_> = coded(types).chain(by_id(1)).collect();
        let values = |variable: usize| {
            let given = self.given(variable);
            let given = if variable == 0 {
                of_table(2, &given.iter().map(String::as_str).collect::<Vec<_>>())
            } else {
                given
            };
            let none = (self.variables[variable].3 != Some(true)).then_some(None);
            given.into_iter().map(Some).chain(none).collect::<Vec<_>>()
        };
        let (of_a, of_b) = (values(0), values(1));
        let mut requests = Vec::new();
        for (type_code, project) in types.iter().flat_map(|t| projects.iter().map(move |p| (t, p)))
        {
            for (a, b) in of_a.iter().flat_map(|a| of_b.iter().map(move |b| (a, b))) {
                let context = [("ORIGINATOR", a), ("B", b)].into_iter();
                let context =
                    context.filter_map(|(name, value)| Some((name.to_owned(), value.clone()?)));
                let context: BTreeMap<String, String> = context.collect();
                let times =
                    dates.iter().flat_map(|date| phases.iter().map(move |phase| (date, phase)));
                requests.extend(times.map(|(date, phase)| Inputs {
                    type_code: type_code.0.clone(),
                    type_id: type_code.1.clone(),
                    project: Some(project.0.clone()).filter(|code| !code.is_empty()),
                    project_id: project.1.clone(),
                    date: Some(date.to_string()),
                    phase: phase.map(ToOwned::to_owned),
                    context: context.clone(),
                    ..Inputs::default()
                }));
            }
        }
        requests
    }
}
