//! What is told when a series is refused: two requests that would get one number.

use std::fmt;

use thiserror::Error;

use super::super::{Inputs, Snowflake};
use super::comparison::WALKS_MAX;
use super::product::PAIRS_MAX;
use super::refined::MEMORIES_MAX;

/// A series whose numbers are not proved to be different (R2.7).
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Ambiguity {
    /// Two requests that take different values and would get one text.
    #[error(
        "{first} and {second} would both get {text:?} {}{}; {explanation}",
        within(scope),
        where_tables(changes)
    )]
    Collision {
        /// One request.
        first: Box<CollidingRequest>,
        /// The other.
        second: Box<CollidingRequest>,
        /// The number that both would get.
        text: String,
        /// The uniqueness scope that both are in; empty for the whole ledger.
        scope: String,
        /// What becomes of the tables of reference data before the two requests and between them,
        /// in the order of time. Codes that no table has are imported first in any case.
        changes: Vec<TableChange>,
        /// Why, and the remedy.
        explanation: String,
    },
    /// Neither a proof nor a collision was found within the bounds of the search.
    #[error("{subject} cannot be proved to be free of collisions: {limit}")]
    Unproven {
        /// The series, or the two, in words.
        subject: String,
        /// Where the search ended, and the remedy.
        limit: Limit,
    },
}

/// Why a search ended without a proof and without a collision. Nothing else leaves a series
/// unproven.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Limit {
    /// More states than are looked at.
    States,
    /// Texts are left that both readings can show; no requests were found that get one of them.
    Examples,
    /// What the tables of two series are lacking, how they differ, or what else helps, in words.
    Tables(String),
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Limit::States => write!(f, "more than {PAIRS_MAX} states or {MEMORIES_MAX} texts")?,
            Limit::Examples => {
                write!(f, "two readings seem possible, none of {WALKS_MAX} was")?;
            }
            Limit::Tables(words) => return f.write_str(words),
        }
        f.write_str(
            "; separate parts of variable width by a sign that they exclude, or give them a fixed \
             width",
        )
    }
}

/// A request with the values that it takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CollidingRequest {
    /// Code of the series that serves it.
    pub series: String,
    /// The request.
    pub inputs: Inputs,
    /// Where it names no project, the code of the only one that its originator belongs to.
    pub project_of_member: Option<String>,
    /// Names and values of the serials that the number shows.
    pub values: Vec<(String, u64)>,
    /// The id that is drawn for it, where the number shows one.
    pub snowflake: Option<Snowflake>,
}

/// A change of the reference data (R4.6) that two requests take to get one number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableChange {
    /// Name of the table.
    pub table: String,
    /// Id of the row; none where the table has no such row yet, and any id will do.
    pub id: Option<String>,
    /// The code that it has before; none: the row is imported.
    pub from: Option<String>,
    /// The code that it has then.
    pub to: String,
    /// Whether it happens between the two requests; before both otherwise.
    pub between: bool,
}

impl fmt::Display for TableChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let TableChange { table, id, from, to, between } = self;
        let when = if *between { "between them" } else { "before" };
        match (from, id) {
            (Some(from), Some(id)) => {
                write!(f, "row {id} of {table} is renamed from {from:?} to {to:?} {when}")
            }
            (Some(from), None) => {
                write!(f, "a new row of {table} is renamed from {from:?} to {to:?} {when}")
            }
            (None, Some(id)) => write!(f, "{to:?} is imported into {table} as row {id} {when}"),
            (None, None) => write!(f, "{to:?} is imported into {table} {when}"),
        }
    }
}

impl fmt::Display for CollidingRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Inputs { type_code, type_id, project, project_id, date, phase, context, .. } =
            &self.inputs;
        match type_id {
            Some(id) => write!(f, "{} (type_id {id:?}", self.series)?,
            None => write!(f, "{} (type {type_code:?}", self.series)?,
        }
        for (name, value) in [("project", project), ("project_id", project_id)] {
            if let Some(value) = value {
                write!(f, ", {name} {value:?}")?;
            }
        }
        if let Some(project) = &self.project_of_member {
            write!(f, ", project {project:?} by membership alone")?;
        }
        if let Some(date) = date {
            write!(f, ", date {date}")?;
        }
        if let Some(phase) = phase {
            write!(f, ", phase {phase:?}")?;
        }
        for (name, value) in context {
            write!(f, ", {name} {value:?}")?;
        }
        for (name, value) in &self.values {
            write!(f, ", {name} = {value}")?;
        }
        if let Some(id) = self.snowflake {
            write!(f, ", id {id} drawn at {} as process {}", id.time(), id.node_number())?;
        }
        f.write_str(")")
    }
}

/// The scope in words.
fn within(scope: &str) -> String {
    if scope.is_empty() { "in the whole ledger".into() } else { format!("within {scope}") }
}

/// What becomes of the tables, in words.
fn where_tables(changes: &[TableChange]) -> String {
    let words: Vec<String> = changes.iter().map(ToString::to_string).collect();
    if words.is_empty() { String::new() } else { format!(", where {}", words.join(", ")) }
}
