//! What is told when a series is refused: two requests that would get one number.

use std::fmt;

use thiserror::Error;

use super::super::Inputs;

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
    #[error("{subject} cannot be proved to be free of collisions: {explanation}")]
    Unproven {
        /// The series, or the two, in words.
        subject: String,
        /// Where the search ended, and the remedy.
        explanation: String,
    },
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
