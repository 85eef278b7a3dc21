//! What series surely take, and may take, of the requests that reach them (R2.9): the rules of
//! `serves`, which name codes, as values that tell the rows of tables apart.
//!
//! Of tables it builds on one thing alone: a code that has a row keeps it for ever. In doubt a
//! series may be asked, and no other surely wins over it.

use std::collections::BTreeSet;

use super::super::Series;
use super::super::series::{Dimension, Variable};
use super::super::served::{self, ORIGINATORS};
use super::super::ties::{ORIGINATOR, PROJECT, Region, Rule, SUB_TYPE, TYPE, rules_of};

/// What a list of `serves` names, as far as it tells rows apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Value<'s> {
    /// A code, where there is no table.
    Code(&'s str),
    /// The row that has this id.
    Row(&'s str),
    /// Whatever row comes to have a code that none has yet.
    New(&'s str),
}

impl<'s> Value<'s> {
    /// What a code of a table stands for.
    pub(super) fn of(series: &'s Series, table: &str, code: &'s str) -> Self {
        let row = series.reference.by_code(table, code);
        row.map_or(Value::New(code), |row| Value::Row(row.id.as_str()))
    }

    /// Whether two of one table may be one row.
    pub(super) fn may_be(self, other: Self) -> bool {
        self == other || [self, other].iter().any(|value| matches!(value, Value::New(_)))
    }
}

/// Whether equal codes at a place mean one value to both: a code never passes to another row.
pub(super) fn is_known_alike(a: &Series, b: &Series, place: usize) -> bool {
    table(a, place) == table(b, place)
}

/// What the choice of a series looks at, as a dimension of one; none where it has none such.
pub(super) fn dimension(series: &Series, place: usize) -> Option<Dimension> {
    let at = |variable: &Variable| {
        let index = series.variables.iter().position(|other| other.name == variable.name)?;
        Some(Dimension::Variable(index))
    };
    match place {
        PROJECT => Some(Dimension::Project),
        TYPE => Some(Dimension::Type),
        _ => at(variable(series, place)?),
    }
}

/// The table by whose ids a series knows the values of a place.
pub(super) fn table(series: &Series, place: usize) -> Option<&str> {
    match place {
        PROJECT => series.table_of(Dimension::Project),
        TYPE => series.table_of(Dimension::Type),
        _ => variable(series, place)?.reference.as_deref(),
    }
}

/// The variable that holds the originator or the sub type; none where a series declares the
/// originator twice, and none for a project or a type.
pub(super) fn variable(series: &Series, place: usize) -> Option<&Variable> {
    let names = match place {
        ORIGINATOR => &ORIGINATORS[..],
        SUB_TYPE => &[served::SUB_TYPE][..],
        _ => return None,
    };
    let mut declared = series.variables.iter().filter(|v| names.contains(&v.name.as_str()));
    let only = declared.next()?;
    declared.next().is_none().then_some(only)
}

/// The rules of a series with all that they may ever take.
pub(super) fn offers(series: &Series) -> Vec<Rule<'_, Value<'_>>> {
    rules_of(&series.definition).into_iter().filter_map(|rule| offer(series, rule)).collect()
}

/// `None` where a rule names only what the series cannot take.
fn offer<'s>(series: &'s Series, rule: Rule<'s>) -> Option<Rule<'s, Value<'s>>> {
    let mut names = Region::default();
    for (place, codes) in rule.names.into_iter().enumerate() {
        let variable = variable(series, place);
        let is_told = matches!(place, PROJECT | TYPE) || variable.is_some();
        let Some(codes) = codes.filter(|_| is_told) else { continue };
        let fits =
            |code: &&str| variable.is_none_or(|variable| variable.rule.check("", code).is_ok());
        let values: BTreeSet<Value<'s>> = match table(series, place) {
            None => codes.into_iter().filter(fits).map(Value::Code).collect(),
            // Where one does not fit, its row may come to have another.
            Some(table) => codes.into_iter().map(|code| Value::of(series, table, code)).collect(),
        };
        if values.is_empty() {
            return None;
        }
        names[place] = Some(values);
    }
    Some(Rule { code: rule.code, rank: rule.rank, names })
}

/// The rules of other series with what they surely take of the requests that a series may be
/// asked, named as that series names it. One of any type takes those that the series itself takes
/// by such a rule.
pub(super) fn winners<'s>(series: &'s Series, active: &[&'s Series]) -> Vec<Rule<'s, Value<'s>>> {
    let code = &series.definition.code;
    let others = active.iter().filter(|other| other.definition.code != *code);
    let surely = |other: &'s Series, rule: Rule<'s>| {
        let mut names = Region::default();
        for (place, codes) in rule.names.into_iter().enumerate() {
            names[place] = match codes {
                // What one takes beyond its list depends on its table.
                None if place == TYPE && table(series, TYPE) != table(other, TYPE) => return None,
                None => None,
                Some(codes) => Some(surely_taken(series, other, place, codes)?),
            };
        }
        Some(Rule { code: rule.code, rank: rule.rank, names })
    };
    let rules = others
        .flat_map(|other| rules_of(&other.definition).into_iter().map(move |rule| (*other, rule)));
    rules.filter_map(|(other, rule)| surely(other, rule)).collect()
}

/// Of the codes that another series names at a place, those that it surely takes in a request for
/// this one; `None` where it may read the request otherwise.
fn surely_taken<'s>(
    series: &'s Series,
    other: &'s Series,
    place: usize,
    codes: BTreeSet<&'s str>,
) -> Option<BTreeSet<Value<'s>>> {
    let by_membership = series.definition.references.membership;
    let is_told = match place {
        TYPE => true,
        // Without a project, both must find the same one.
        PROJECT => !by_membership || derives_alike(series, other),
        _ => variable(series, place).is_some(),
    };
    match (table(series, place), table(other, place)) {
        _ if !is_told => None,
        // What has no table is sent as a code, which is one that the other names as well.
        (None, None) => Some(codes.into_iter().map(Value::Code).collect()),
        (None, Some(its)) => {
            let rows = codes.iter().filter_map(|code| other.reference.by_code(its, code));
            let had = rows.flat_map(|row| row.former_codes.iter().chain([&row.code]));
            let had: Vec<&str> = had.map(String::as_str).collect();
            Some(codes.into_iter().chain(had).map(Value::Code).collect())
        }
        (Some(own), Some(its)) if own == its => {
            Some(codes.into_iter().map(|code| Value::of(series, own, code)).collect())
        }
        // By an id of a table that the other does not look into.
        (Some(_), _) => None,
    }
}

/// Whether another series finds the same project by the originator's memberships, and both by what
/// the request says.
fn derives_alike(series: &Series, other: &Series) -> bool {
    let (own, its) = (&series.definition.references, &other.definition.references);
    let is_sent = variable(series, ORIGINATOR).is_some_and(|variable| variable.default.is_none());
    is_sent
        && its.membership
        && own.project == its.project
        && series.originator_table() == other.originator_table()
}
