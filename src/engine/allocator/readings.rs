//! What a text may be: every active series that can read it as one of its numbers.

use std::cmp::Reverse;
use std::fmt;
use std::sync::Arc;

use jiff::Timestamp;
use numbering::{Inputs, ParseError, Parsed, RuleError, SeriesDefinition};
use thiserror::Error;

use super::catalog::{Catalog, ServedSeries};
use crate::ledger::SeriesVersion;

/// Into how many parts a character read is divided by the variables of a series.
const DEPTH_PARTS: usize = 1_000;

/// A series that a text may be a number of. Does not show whether it was issued.
#[derive(Clone, Debug)]
pub struct Reading {
    /// The series, in the version that reads it so.
    pub served: Arc<ServedSeries>,
    /// Document types that the number may be of.
    pub types: Vec<String>,
    /// Its parts; `None` where the series can read it in more than one way.
    pub parsed: Option<Parsed>,
}

/// A text that no active series can read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unread {
    /// The series that reads furthest, by its code, and where the text departs from it; `None`
    /// where no series is active.
    pub nearest: Option<(String, ParseError)>,
}

impl fmt::Display for Unread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("no active series can read it as a number")?;
        match &self.nearest {
            Some((code, error)) => write!(f, "; series {code} comes nearest: {error}"),
            None => Ok(()),
        }
    }
}

/// Why a text is not a number of a type.
#[derive(Clone, Debug, Error)]
pub enum ReadingError {
    /// No series serves the type.
    #[error(transparent)]
    NotServed(#[from] RuleError),
    /// Where the text departs from each series that does.
    #[error("{0}")]
    Departs(String),
}

/// A text as one version of a series reads it, even where that is ambiguous; else where it departs.
/// A value that the version never has is none of its own.
fn read_by(served: &Arc<ServedSeries>, number: &str) -> Result<Reading, ParseError> {
    let series = &served.series;
    let (types, parsed) = match series.read(number) {
        Ok(parsed) => (series.types_of(&parsed), Some(parsed)),
        Err(ParseError::Ambiguous { .. }) => (series.types_shown().to_vec(), None),
        Err(error) => return Err(error),
    };
    Ok(Reading { served: Arc::clone(served), types, parsed })
}

impl Catalog {
    /// A text as a series reads it: by the version in force, else by the newest of the earlier ones
    /// that does, as far as [they are known](Catalog::know_earlier).
    fn read(
        &self,
        served: &Arc<ServedSeries>,
        number: &str,
        sees: impl Fn(&SeriesVersion) -> bool,
    ) -> Result<Reading, ParseError> {
        read_by(served, number).or_else(|departs| {
            let earlier = self.earlier_of(served.version.series_id).iter();
            let mut earlier = earlier.filter(|version| sees(&version.version));
            earlier.find_map(|version| read_by(version, number).ok()).ok_or(departs)
        })
    }

    /// All readings of a text, by the code of the series.
    ///
    /// # Errors
    /// [`Unread`] where no series can read it.
    pub fn readings(&self, number: &str) -> Result<Vec<Reading>, Unread> {
        self.readings_seen(number, |_| true)
    }

    /// The same by the series that the caller sees: no other one is tried, or named.
    ///
    /// # Errors
    /// [`Unread`] where none of them can read it.
    pub fn readings_seen(
        &self,
        number: &str,
        sees: impl Fn(&SeriesVersion) -> bool,
    ) -> Result<Vec<Reading>, Unread> {
        let (mut found, mut departures) = (Vec::new(), Vec::new());
        for served in self.active().iter().filter(|served| sees(&served.version)) {
            match self.read(served, number, &sees) {
                Ok(reading) => found.push(reading),
                Err(error) => departures.push((&served.version.definition, error)),
            }
        }
        if !found.is_empty() {
            return Ok(found);
        }
        // A variable takes nearly any text: what is reached through many is understood less.
        let depth = |(series, error): &(&SeriesDefinition, ParseError)| {
            let open = series.variables.len();
            (error.reach().saturating_mul(DEPTH_PARTS) / (1 + open), Reverse(open))
        };
        let nearest = departures.into_iter().max_by_key(depth);
        Err(Unread { nearest: nearest.map(|(series, error)| (series.code.clone(), error)) })
    }

    /// The readings of a text as a number of one type, and of one project where it is given. What
    /// else chooses a series for a request, such as its originator, is read from the text.
    ///
    /// # Errors
    /// What a request of that type would be refused with, where no series serves it; else why each
    /// of those that do cannot read the text.
    pub fn readings_as(
        &self,
        type_code: &str,
        project: Option<&str>,
        number: &str,
        now: Timestamp,
    ) -> Result<Vec<Reading>, ReadingError> {
        let serves = |served: &&Arc<ServedSeries>| {
            let projects = served.series.projects_shown();
            let is_of =
                |project: &str| projects.is_empty() || projects.iter().any(|p| p == project);
            served.series.types_shown().iter().any(|t| t == type_code) && project.is_none_or(is_of)
        };
        let mut serving: Vec<&Arc<ServedSeries>> = self.active().iter().filter(serves).collect();
        if serving.is_empty() {
            let (type_code, project) = (type_code.to_owned(), project.map(str::to_owned));
            let inputs = Inputs { type_code, project, ..Inputs::default() };
            serving.push(self.choose(&inputs, now)?);
        }
        let (mut found, mut departures) = (Vec::new(), Vec::new());
        for served in serving {
            let code = &served.version.definition.code;
            match self.read(served, number, |_| true) {
                Ok(reading) if reading.types.iter().any(|name| name == type_code) => {
                    found.push(reading);
                }
                Ok(Reading { types, .. }) => {
                    departures.push(format!("series {code}: it is of type {}", types.join(" or ")));
                }
                Err(error) => departures.push(format!("series {code}: {error}")),
            }
        }
        if found.is_empty() { Err(ReadingError::Departs(departures.join("; "))) } else { Ok(found) }
    }
}
