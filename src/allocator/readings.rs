//! What a text may be: every active series that can read it as a number of its own (R2.8).

use std::sync::Arc;

use super::catalog::{Catalog, ServedSeries};
use crate::number::{ParseError, Parsed};

/// A series that a text may be a number of. Says nothing of whether it was issued.
#[derive(Clone, Debug)]
pub struct Reading {
    /// The series, in its active version.
    pub served: Arc<ServedSeries>,
    /// Document types that the number may be of.
    pub types: Vec<String>,
    /// Its parts; `None` where the series can read it in more than one way.
    pub parsed: Option<Parsed>,
}

impl Catalog {
    /// All readings of a text, by the code of the series.
    #[must_use]
    pub fn readings(&self, number: &str) -> Vec<Reading> {
        let read = |served: &Arc<ServedSeries>| {
            let series = &served.series;
            let (types, parsed) = match series.parse(number) {
                Ok(parsed) => (series.types_of(&parsed), Some(parsed)),
                Err(ParseError::Ambiguous) => (series.types_shown().to_vec(), None),
                Err(_) => return None,
            };
            Some(Reading { served: Arc::clone(served), types, parsed })
        };
        self.active().iter().filter_map(read).collect()
    }
}
