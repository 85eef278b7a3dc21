//! What is told when a series is refused: two requests that would get one number.

use std::fmt;

use thiserror::Error;

use super::super::Inputs;
use super::comparison::WALKS_MAX;
use super::product::PAIRS_MAX;
use super::refined::MEMORIES_MAX;

/// A series whose numbers are not proved to be different (R2.7).
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Ambiguity {
    /// Two requests that take different values and would get one text.
    #[error("{first} and {second} would both get {text:?} {}; {explanation}", within(scope))]
    Collision {
        /// One request.
        first: Box<CollidingRequest>,
        /// The other.
        second: Box<CollidingRequest>,
        /// The number that both would get.
        text: String,
        /// The uniqueness scope that both are in; empty for the whole ledger.
        scope: String,
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
    /// What the tables of two series are lacking, or how they differ, in words.
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
    /// Names and values of the serials.
    pub values: Vec<(String, u64)>,
}

impl fmt::Display for CollidingRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Inputs { type_code, project, date, phase, context, .. } = &self.inputs;
        write!(f, "{} (type {type_code:?}", self.series)?;
        if let Some(project) = project {
            write!(f, ", project {project:?}")?;
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
        f.write_str(")")
    }
}

/// The scope in words.
fn within(scope: &str) -> String {
    if scope.is_empty() { "in the whole ledger".into() } else { format!("within {scope}") }
}
