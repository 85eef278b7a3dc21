//! Which requests a version numbers: what `serves` lists, without what another series takes before
//! it. In doubt a version numbers a request, and no other takes it before.
//!
//! Of tables it relies on one fact alone: a code that has a row keeps it forever.

use std::collections::BTreeSet;

use super::super::Series;
use super::super::series::{Dimension, Variable};
use super::super::served::{self, ORIGINATORS};
use super::super::ties::{ORIGINATOR, PROJECT, Rule, SUB_TYPE, TYPE, rules_of};
use super::super::window::days_of;
use super::Party;

/// How many values of a request the choice of a series depends on.
const AXES: usize = 4;

/// Values of one axis: ids of rows if the series has a table of them, else codes.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Values<'s> {
    These(BTreeSet<&'s str>),
    AllBut(BTreeSet<&'s str>),
}

impl<'s> Values<'s> {
    const ANY: Self = Values::AllBut(BTreeSet::new());

    /// Those among `others`, and those that are not.
    fn split(&self, others: &BTreeSet<&'s str>) -> [Self; 2] {
        match self {
            Values::These(these) => [Values::These(these & others), Values::These(these - others)],
            Values::AllBut(except) => {
                [Values::These(others - except), Values::AllBut(except | others)]
            }
        }
    }

    fn is_none(&self) -> bool {
        matches!(self, Values::These(these) if these.is_empty())
    }

    /// Those that are in both.
    fn common(&self, other: &Self) -> Self {
        match (self, other) {
            (Values::These(these), Values::These(those)) => Values::These(these & those),
            (Values::These(these), Values::AllBut(except))
            | (Values::AllBut(except), Values::These(these)) => Values::These(these - except),
            (Values::AllBut(one), Values::AllBut(other)) => Values::AllBut(one | other),
        }
    }
}

/// Requests by the values of project, originator, type and sub type: every combination of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Requests<'s>([Values<'s>; AXES]);

impl<'s> Requests<'s> {
    /// How many codes are listed, or left out, on all axes.
    pub(super) fn codes_total(&self) -> usize {
        let codes = |values: &Values<'_>| match values {
            Values::These(codes) | Values::AllBut(codes) => codes.len(),
        };
        self.0.iter().map(codes).sum()
    }

    /// The codes of an axis, if they are listed.
    pub(super) fn codes(&self, axis: usize) -> Option<&BTreeSet<&'s str>> {
        match &self.0[axis] {
            Values::These(codes) => Some(codes),
            Values::AllBut(_) => None,
        }
    }

    /// The codes of an axis that a series lists and that are in these requests, as it reads them.
    pub(super) fn listed(&self, series: &'s Series, axis: usize) -> Vec<String> {
        let is_in = |code: &&String| match value(series, axis, code) {
            Some(value) => !self.0[axis].common(&Values::These([value].into())).is_none(),
            None => matches!(self.0[axis], Values::AllBut(_)),
        };
        listed(series, axis).iter().filter(is_in).cloned().collect()
    }

    /// Whether no value of an axis is in both.
    pub(super) fn are_apart(&self, other: &Self, axis: usize) -> bool {
        self.0[axis].common(&other.0[axis]).is_none()
    }

    /// Reduces both, on an axis, to what both have.
    pub(super) fn cut(&mut self, other: &mut Self, axis: usize) {
        let common = self.0[axis].common(&other.0[axis]);
        other.0[axis] = common.clone();
        self.0[axis] = common;
    }

    /// What remains without the requests that have one of these values on each axis.
    fn without(self, taken: &[Option<BTreeSet<&'s str>>; AXES]) -> Vec<Self> {
        let (mut inside, mut left) = (self, Vec::new());
        for (axis, values) in taken.iter().enumerate() {
            let Some(values) = values else { continue };
            let [common, outside] = inside.0[axis].split(values);
            if !outside.is_none() {
                let mut beside = inside.clone();
                beside.0[axis] = outside;
                left.push(beside);
            }
            if common.is_none() {
                return left;
            }
            inside.0[axis] = common;
        }
        left
    }
}

/// The requests that a party may number: those of its rules, without what its rival takes by an
/// equal or a better one.
pub(super) fn requests<'s>(party: &Party<'s>) -> Vec<Requests<'s>> {
    let series = party.series;
    let rivals = party.rival.map(|rival| rules_of(&rival.definition)).unwrap_or_default();
    let numbered = |rule: Rule<'s>| {
        let mut left = vec![of_rule(series, &rule)];
        for other in &rivals {
            // What one takes beyond its list may be undetermined for a third one.
            let is_listed = other.names[TYPE].is_some() || rule.names[TYPE].is_none();
            if let Some(taken) =
                taken(party, other).filter(|_| is_listed && other.rank >= rule.rank)
            {
                left = left.into_iter().flat_map(|requests| requests.without(&taken)).collect();
            }
        }
        left
    };
    rules_of(&series.definition).into_iter().flat_map(numbered).collect()
}

/// All that a rule of a series lists.
fn of_rule<'s>(series: &'s Series, rule: &Rule<'s>) -> Requests<'s> {
    let mut requests = Requests([Values::ANY; AXES]);
    for (axis, codes) in rule.names.iter().enumerate() {
        let Some(codes) = codes.as_ref().filter(|_| is_told(series, axis)) else { continue };
        let values = codes.iter().map(|code| value(series, axis, code));
        // A code without a row may become the code of any row.
        if let Some(values) = values.collect::<Option<BTreeSet<_>>>() {
            requests.0[axis] = Values::These(values);
        }
    }
    requests
}

/// What a rule of its rival surely takes of the requests that a party reads; none if the rival may
/// read them otherwise.
fn taken<'s>(party: &Party<'s>, rule: &Rule<'s>) -> Option<[Option<BTreeSet<&'s str>>; AXES]> {
    let (series, rival) = (party.series, party.rival?);
    // On other days it leaves them to the party. These days may change; that both have the same
    // ones is checked again with each change of one.
    let days = days_of(&rival.definition);
    if days.is_some() && days != days_of(&series.definition) {
        return None;
    }
    let mut taken: [Option<BTreeSet<&'s str>>; AXES] = Default::default();
    for (axis, codes) in rule.names.iter().enumerate() {
        // A rule that lists no types takes those of its table.
        if codes.is_none() && axis != TYPE {
            continue;
        }
        let is_read_alike = match axis {
            TYPE => true,
            PROJECT => !series.definition.references.membership || derives_alike(series, rival),
            _ => is_always_sent(series, axis),
        };
        if !is_read_alike || !is_known_alike(series, rival, axis) {
            return None;
        }
        let Some(codes) = codes else { continue };
        // A version that is over may be older than the code of a row that was renamed.
        let is_certain = |code: &&&str| party.version.is_none() || is_first(rival, axis, code);
        let values = codes.iter().filter(is_certain).filter_map(|code| value(rival, axis, code));
        taken[axis] = Some(values.collect());
    }
    Some(taken)
}

/// Whether a code is the first that its row had.
fn is_first(series: &Series, axis: usize, code: &str) -> bool {
    let row = table(series, axis).and_then(|table| series.reference.by_code(table, code));
    row.is_none_or(|row| row.former_codes.iter().all(|former| former == code))
}

/// What a code refers to; none if its table has no row of it.
fn value<'s>(series: &'s Series, axis: usize, code: &'s str) -> Option<&'s str> {
    match table(series, axis) {
        Some(table) => series.reference.by_code(table, code).map(|row| row.id.as_str()),
        None => Some(code),
    }
}

/// The codes that a series lists on an axis; none: it takes any.
pub(super) fn listed(series: &Series, axis: usize) -> &[String] {
    let serves = &series.definition.serves;
    match axis {
        PROJECT => &serves.projects,
        ORIGINATOR => &serves.originators,
        TYPE => &serves.types,
        _ => &serves.sub_types,
    }
}

/// Codes that a series lists and that its tables do not have.
pub(super) fn without_row(series: &Series) -> Vec<&str> {
    let all = (0..AXES).flat_map(|axis| listed(series, axis).iter().map(move |code| (axis, code)));
    let missing = all.filter(|(axis, code)| value(series, *axis, code).is_none());
    missing.map(|(_, code)| code.as_str()).collect()
}

/// Whether a request has one value on an axis, and the series knows which.
fn is_told(series: &Series, axis: usize) -> bool {
    matches!(axis, PROJECT | TYPE) || variable(series, axis).is_some()
}

/// Whether a request for a series always brings a value of an axis.
fn is_always_sent(series: &Series, axis: usize) -> bool {
    let is_listed = !listed(series, axis).is_empty();
    let needs =
        |variable: &Variable| variable.default.is_none() && (variable.required || variable.shown);
    variable(series, axis).is_some_and(|variable| is_listed || needs(variable))
}

/// Whether both, of one table of projects, find the same one by the originator's memberships.
fn derives_alike(series: &Series, other: &Series) -> bool {
    let is_sent = variable(series, ORIGINATOR).is_some_and(|variable| variable.default.is_none());
    is_sent
        && other.definition.references.membership
        && series.originator_table() == other.originator_table()
}

/// Whether equal codes of an axis mean one value to both.
fn is_known_alike(one: &Series, other: &Series, axis: usize) -> bool {
    table(one, axis) == table(other, axis)
}

/// The table by whose ids a series knows the values of an axis.
fn table(series: &Series, axis: usize) -> Option<&str> {
    match axis {
        PROJECT => series.table_of(Dimension::Project),
        TYPE => series.table_of(Dimension::Type),
        _ => variable(series, axis)?.reference.as_deref(),
    }
}

/// The variable that holds the originator or the sub type; none if a series declares the originator
/// twice.
fn variable(series: &Series, axis: usize) -> Option<&Variable> {
    let names = match axis {
        ORIGINATOR => &ORIGINATORS[..],
        SUB_TYPE => &[served::SUB_TYPE][..],
        _ => return None,
    };
    let mut declared = series.variables.iter().filter(|v| names.contains(&v.name.as_str()));
    let only = declared.next()?;
    declared.next().is_none().then_some(only)
}

/// The axis that a dimension is.
pub(super) fn axis_of(series: &Series, dimension: Dimension) -> Option<usize> {
    match dimension {
        Dimension::Project => Some(PROJECT),
        Dimension::Type => Some(TYPE),
        Dimension::Variable(index) => [ORIGINATOR, SUB_TYPE].into_iter().find(|axis| {
            variable(series, *axis).is_some_and(|v| v.name == series.variables[index].name)
        }),
    }
}
