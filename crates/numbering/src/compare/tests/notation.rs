//! Series on one line, for tables of traps: a template, with `␣` for a blank, then `name=value`.
//!
//! A variable is its characters and its width: `A=0-9{2}` is two digits, `A=^-{1,9}` up to nine
//! characters without `-`, `A=*` any text, `A=*@parties` one of a table, `A?=*` one that may be
//! absent, and `A=*|X` one with a default. Lists are separated by commas; `tables=project,type`
//! refers to the tables of that name.

use std::sync::Arc;

use super::super::super::testing::{definition, reference, serial};
use super::super::super::{
    Overflow, ReferenceData, ReferenceRow, Series, SeriesDefinition, Style, VariableDefinition,
};
use super::super::effort::Effort;
use super::super::{Ambiguity, EarlierVersion, GiveUp, Party, compare, prove_saved};

/// The definition of a line.
pub(super) fn define(line: &str) -> SeriesDefinition {
    let mut words = line.split_whitespace();
    let mut series = SeriesDefinition { code: "a".into(), ..definition() };
    series.template = words.next().expect("a template").replace('␣', " ");
    series.fiscal_year_start = Some(4);
    let names = series
        .template
        .split("{SEQ:")
        .skip(1)
        .filter_map(|rest| Some(rest.split('}').next()?.split_once(':')?.1));
    let serials: Vec<_> = names.map(serial).collect();
    if !serials.is_empty() {
        series.serials = serials;
    }
    let is_counted = series.template.contains("{SEQ");
    series.serials.retain(|_| is_counted);
    for word in words {
        let (name, value) = word.split_once('=').expect("name=value");
        let list = || {
            value.split(',').filter(|item| !item.is_empty()).map(str::to_owned).collect::<Vec<_>>()
        };
        let number = || value.parse::<u64>().expect("a number");
        match name {
            "code" => series.code = value.into(),
            "types" => series.serves.types = list(),
            "projects" => series.serves.projects = list(),
            "originators" => series.serves.originators = list(),
            "sub" => series.serves.sub_types = list(),
            "undetermined" => series.serves.undetermined_types = list(),
            "default" => series.serves.default = true,
            "within" => series.unique_within = list(),
            "from" => series.serves.dated_from = Some(value.into()),
            "before" => series.serves.dated_before = Some(value.into()),
            "zone" => series.timezone = Some(value.into()),
            "fiscal" => series.fiscal_year_start = value.parse().ok(),
            "prefix" => series.prefix = Some(value.into()),
            "member" => series.references.membership = true,
            "tables" => {
                let table = |name: &str| list().contains(&name.to_owned()).then(|| name.to_owned());
                (series.references.project, series.references.type_code) =
                    (table("project"), table("type"));
            }
            _ if name.starts_with(char::is_uppercase) => {
                series.variables.insert(name.trim_end_matches('?').into(), variable(name, value));
            }
            _ => {
                for (index, serial) in series.serials.iter_mut().enumerate() {
                    match name {
                        "start" => serial.start = number(),
                        "step" => serial.step = number(),
                        "max" => serial.max = Some(number()),
                        "counter" => serial.counter = list(),
                        "counter2" if index > 0 => serial.counter = list(),
                        "starts" if index == 0 => serial.start = number(),
                        "most" if index == 0 => serial.max = Some(number()),
                        "letters" if index == 1 => {}
                        "counter2" | "starts" | "most" => {}
                        "reset" => {
                            serial.reset = serde_json::from_value(value.into()).expect("a reset");
                        }
                        "letters" => serial.style = Style::Letters,
                        "widens" => serial.overflow = Overflow::Widen,
                        other => panic!("{other}"),
                    }
                }
            }
        }
    }
    series
}

fn variable(name: &str, notation: &str) -> VariableDefinition {
    let (notation, default) =
        notation.split_once('|').map_or((notation, None), |(n, d)| (n, Some(d)));
    let (notation, table) =
        notation.split_once('@').map_or((notation, None), |(n, t)| (n, Some(t)));
    let (signs, width) =
        notation.split_once('{').map_or((notation, None), |(s, w)| (s, w.strip_suffix('}')));
    let most = width.and_then(|width| width.strip_prefix("1,"));
    VariableDefinition {
        required: !name.ends_with('?'),
        default: default.map(Into::into),
        alphabet: (signs != "*" && !signs.starts_with('^')).then(|| signs.into()),
        excluded: signs.strip_prefix('^').map(Into::into),
        width: width.filter(|_| most.is_none()).map(|width| width.parse().expect("a width")),
        width_max: most.map(|most| most.parse().expect("a width")),
        reference: table.map(Into::into),
        ..VariableDefinition::default()
    }
}

/// The series of a line.
pub(super) fn compiled(line: &str) -> Series {
    Series::compile(define(line)).unwrap_or_else(|error| panic!("{line}: {error}"))
}

/// Rows such as `type 1 T;type 2 U V`: table, id, former codes, present code.
pub(super) fn rows(text: &str) -> Arc<ReferenceData> {
    let row = |row: &str| {
        let words: Vec<&str> = row.split_whitespace().collect();
        let [table, id, former @ .., code] = &words[..] else { panic!("{row}") };
        let former_codes = former.iter().map(ToString::to_string).collect();
        ReferenceRow { former_codes, ..reference(table, id, code, true) }
    };
    Arc::new(ReferenceData::new(text.split(';').filter(|row| !row.trim().is_empty()).map(row), []))
}

/// What a table of traps expects of a case.
#[derive(Clone, Copy, Debug)]
pub(super) enum Verdict {
    Proved,
    /// Refused, in words that hold these.
    Refused(&'static str),
}

pub(super) use Verdict::{Proved, Refused};

#[track_caller]
fn assert_verdict(case: &str, verdict: Verdict, found: Result<(), String>) {
    match (verdict, found) {
        (Proved, found) => assert_eq!(found, Ok(()), "{case}"),
        (Refused(words), Err(told)) => assert!(told.contains(words), "{case}: {told}"),
        (Refused(_), Ok(())) => panic!("{case}: is proved"),
    }
}

/// What a series may number in relation to a rival.
pub(super) fn party<'s>(series: &'s Series, rival: Option<&'s Series>) -> Party<'s> {
    let least = series.serials().iter().map(|serial| serial.start).collect();
    Party { series, version: None, least, rival }
}

/// A series alone.
pub(super) fn prove(series: &Series) -> Result<(), Ambiguity> {
    compared(&party(series, None), &party(series, None))
}

/// Two parties, with a whole effort.
pub(super) fn compared(one: &Party<'_>, other: &Party<'_>) -> Result<(), Ambiguity> {
    compare(one, other, &Effort::whole(&GiveUp::default()))
}

/// The same in a table of traps.
#[track_caller]
pub(super) fn alone(line: &str, verdict: Verdict) {
    let found = prove(&compiled(line)).map_err(|error| error.to_string());
    assert_verdict(line, verdict, found);
}

/// Two series, each against the other, for two types unless they name some, with these tables.
#[track_caller]
pub(super) fn two(tables: &str, lines: [&str; 2], verdict: Verdict) {
    let other = format!("{} code=b", lines[1]);
    let other = if lines[1].contains("types=") { other } else { format!("{other} types=U") };
    let data = rows(tables);
    let all = [lines[0], &other].map(define);
    for subject in ["a", "b"] {
        let found =
            prove_saved(&all, &data, |series| series.code == subject, &[], &[], &GiveUp::default());
        let found = found.map(|_| ()).map_err(|error| error.to_string());
        assert_verdict(&format!("{subject} of {lines:?}"), verdict, found);
    }
}

/// A series after its earlier versions.
#[track_caller]
pub(super) fn after(earlier: &[&str], next: &str, verdict: Verdict) {
    let versions = std::iter::zip(1.., earlier);
    let versions: Vec<EarlierVersion> = versions
        .map(|(version, line)| EarlierVersion { version, definition: define(line) })
        .collect();
    let data = rows("type 1 T;type 2 U");
    let found = prove_saved(&[define(next)], &data, |_| true, &versions, &[], &GiveUp::default());
    let found = found.map(|_| ()).map_err(|error| error.to_string());
    assert_verdict(&format!("{next} after {earlier:?}"), verdict, found);
}
