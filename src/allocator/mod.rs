//! Takes numbers: coalesces waiting requests into flights to Redis or transactions of the ledger.
//!
//! One lane per partition is the only place where a number becomes *handed out*: its records enter
//! the journal queue before any waiting caller sees them (F11).

mod error;
mod order;
mod settings;

pub use error::{AllocError, NumberTaken, Unavailable};
pub use order::{Issued, Preview, Request};
pub use settings::AllocatorSettings;

use std::sync::Arc;

/// Hands out numbers. Cheap to clone.
#[derive(Clone)]
pub struct Allocator {}

impl Allocator {
    /// Issues a number (or a range of `count`) for a request.
    ///
    /// Dropping the future gives the request up if it has not been flown yet; a number taken for it
    /// is journaled all the same.
    ///
    /// # Errors
    /// See [`AllocError`]; each says whether a retry is useful and whether a number may have been taken.
    pub async fn issue(&self, _request: Request) -> Result<Issued, AllocError> {
        todo!()
    }

    /// Checks a request and shows what its number would look like. Takes nothing.
    ///
    /// # Errors
    /// Whatever `issue` would refuse before taking a number.
    pub async fn preview(&self, _request: Request) -> Result<Preview, AllocError> {
        todo!()
    }

    /// The active series, compiled, by code.
    #[must_use]
    pub fn catalog(&self) -> Arc<Catalog> {
        todo!()
    }
}

/// The active series of the ledger, compiled; replaced as a whole when any of them changes.
pub struct Catalog {}

/// One active series.
pub struct ServedSeries {
    /// Its row in the ledger.
    pub version: crate::ledger::SeriesVersion,
    /// Its compiled form.
    pub series: crate::number::Series,
}

impl Catalog {
    /// All active series, by code.
    #[must_use]
    pub fn all(&self) -> &[Arc<ServedSeries>] {
        todo!()
    }

    /// The series that serves a type and project (R2.9).
    ///
    /// # Errors
    /// See [`crate::number::RuleError`].
    pub fn choose(
        &self,
        _type_code: &str,
        _project: Option<&str>,
    ) -> Result<&Arc<ServedSeries>, crate::number::RuleError> {
        todo!()
    }
}
