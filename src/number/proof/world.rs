//! Reference data for examples: a code that no table has yet may be imported at any time, so two
//! requests are rendered as if the codes that they name stood in their tables.
//!
//! Only for examples. No proof rests on what is made up here.

use std::ops::Deref;
use std::sync::Arc;

use super::super::draft::ABSENT;
use super::super::served::ORIGINATORS;
use super::super::{Inputs, Membership, ReferenceData, ReferenceRow, Series};

/// Tables in which the codes of some requests stand.
pub(super) struct World(Arc<ReferenceData>);

/// A series with the tables of a world.
pub(super) enum Bound<'s> {
    /// It refers to none: it is what it was.
    Same(&'s Series),
    /// It has these instead of its own.
    Other(Box<Series>),
}

impl Deref for Bound<'_> {
    type Target = Series;

    fn deref(&self) -> &Series {
        match self {
            Bound::Same(series) => series,
            Bound::Other(series) => series,
        }
    }
}

impl World {
    /// The rows that the series' tables have of the codes, and new ones of the others; originators
    /// are members of the projects.
    pub(super) fn of<'a>(requests: impl IntoIterator<Item = (&'a Series, &'a Inputs)>) -> Self {
        let (mut rows, mut memberships) = (Vec::new(), Vec::new());
        for (series, inputs) in requests {
            for (table, code) in codes(series, inputs) {
                rows.push(row(series, table, code));
            }
            memberships.extend(membership(series, inputs));
        }
        World(Arc::new(ReferenceData::new(rows, memberships)))
    }

    /// A series of this world.
    pub(super) fn bound<'s>(&self, series: &'s Series) -> Bound<'s> {
        if !series.refers() {
            return Bound::Same(series);
        }
        let again = Series::compile(series.definition.clone()).expect("it was compiled before");
        Bound::Other(Box::new(again.with_reference(Arc::clone(&self.0))))
    }
}

/// Codes of tables that a request names or that its series puts in their place.
fn codes<'a>(series: &'a Series, inputs: &'a Inputs) -> Vec<(&'a str, &'a str)> {
    let references = &series.definition.references;
    let type_code = references.type_code.as_deref().map(|table| (table, &*inputs.type_code));
    let project = references.project.as_deref().zip(inputs.project.as_deref());
    let variables = series.variables.iter().filter_map(|variable| {
        let given = inputs.context.get(&variable.name).or(variable.default.as_ref());
        Some((variable.reference.as_deref()?, given?.as_str()))
    });
    let all = type_code.into_iter().chain(project).chain(variables);
    all.filter(|(_, code)| *code != ABSENT).collect()
}

/// The row that has a code, or that would be imported for it.
fn row(series: &Series, table: &str, code: &str) -> ReferenceRow {
    series.reference.by_code(table, code).cloned().unwrap_or_else(|| ReferenceRow {
        table: table.to_owned(),
        // No row of a table has such an id.
        id: format!("new {code}"),
        code: code.to_owned(),
        name: String::new(),
        active: true,
        former_codes: Vec::new(),
    })
}

/// That the originator of a request belongs to its project.
fn membership(series: &Series, inputs: &Inputs) -> Option<Membership> {
    let originator = ORIGINATORS.iter().find_map(|name| inputs.context.get(*name))?;
    let member = row(series, series.originator_table()?, originator);
    let project =
        row(series, series.definition.references.project.as_deref()?, inputs.project.as_deref()?);
    let (table, id, of_table, of_id) = (member.table, member.id, project.table, project.id);
    Some(Membership { table, id, of_table, of_id, active: true })
}
