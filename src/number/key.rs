//! The name of one counter.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The dimension values and the period that name one counter (R3.1), in the order in which the
/// serial lists them, the period last. Independent of what the template shows.
///
/// Its text form is injective (`name=value` joined by `;`, with `\`, `;` and `=` escaped by `\`) and
/// is compared byte for byte in every store (F24).
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct CounterKey {
    /// `(dimension, value)` pairs.
    pub parts: Vec<(String, String)>,
}

impl fmt::Display for CounterKey {
    fn fmt(&self, _f: &mut fmt::Formatter<'_>) -> fmt::Result {
        todo!()
    }
}

impl CounterKey {
    /// Reads the text form back; `None` where it is not one.
    #[must_use]
    pub fn parse(_text: &str) -> Option<Self> {
        todo!()
    }
}
