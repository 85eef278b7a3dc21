//! How a request is read: by the series that serves it, across the days on which others do (F40),
//! and by what the ledger has now before it is refused.

use std::sync::Arc;

use jiff::Timestamp;
use numbering::Told;
use tokio::time::Instant;

use super::catalog::Catalog;
use super::day_turns::DayTurns;
use super::drafted::{Drafting, Purpose};
use super::error::unavailable;
use super::pending_request::CheckedRequest;
use super::{AllocError, Allocator, Hints, NumberTaken, Request, Unavailable};

impl Allocator {
    /// Reads a request that came at `began`, until `by`.
    ///
    /// # Errors
    /// What is wrong with it, by the series and tables that the ledger has now.
    pub(super) async fn draft(
        &self,
        request: &Request,
        (began, by): (Instant, Instant),
        (purpose, hints): (Purpose, &Hints),
    ) -> Result<Drafting, AllocError> {
        let catalog = self.catalog();
        let refused = match self.draft_by(&catalog, request, by, purpose).await {
            Err(error) if is_of_catalog(&error) => error,
            drafted => return drafted,
        };
        // Boxed, as few requests need it: see `issue`.
        if !Box::pin(self.knows_all_since(began, by)).await {
            return Err(unavailable(Unavailable::Ledger, NumberTaken::No));
        }
        let newer = self.catalog();
        if Arc::ptr_eq(&catalog, &newer) {
            return Err(self.in_full(&catalog, request, refused, hints));
        }
        let drafted = Box::pin(self.draft_by(&newer, request, by, purpose)).await;
        drafted.map_err(|refused| self.in_full(&newer, request, refused, hints))
    }

    /// A refusal with hints, where they are wanted.
    fn in_full(
        &self,
        catalog: &Catalog,
        request: &Request,
        refused: AllocError,
        hints: &Hints,
    ) -> AllocError {
        if !is_of_catalog(&refused) || !hints.take() {
            return refused;
        }
        let now = self.shared.context.clock.now();
        // A request that came a moment too early gets its first refusal.
        CheckedRequest::draft(catalog, request, now, Told::InFull).err().unwrap_or(refused)
    }

    async fn draft_by(
        &self,
        catalog: &Catalog,
        request: &Request,
        by: Instant,
        purpose: Purpose,
    ) -> Result<Drafting, AllocError> {
        let context = &self.shared.context;
        let now = context.clock.now();
        let turns = match purpose {
            Purpose::Issue => DayTurns::of(catalog, request, now, context.windows_asked(1)),
            Purpose::Preview => None,
        };
        match turns {
            None => {
                CheckedRequest::draft(catalog, request, now, Told::InBrief).map(Drafting::Drafted)
            }
            Some(turns) => Box::pin(self.draft_across(catalog, turns, request, (now, by))).await,
        }
    }

    /// Reads a request by the moment since when it is asked, unless it was answered before.
    async fn draft_across(
        &self,
        catalog: &Catalog,
        turns: DayTurns,
        request: &Request,
        (now, by): (Timestamp, Instant),
    ) -> Result<Drafting, AllocError> {
        CheckedRequest::check_fields(request)?;
        // A number out of reach is refused in the same words as a missing one.
        if !request.identity.scope.is_everything() {
            CheckedRequest::draft(catalog, request, now, Told::InBrief)?;
        }
        let asked_at = self.asked_at(&turns, request, (now, by)).await?;
        if let Some(answer) = self.earlier_across(catalog, turns, request, (asked_at, by)).await? {
            return Ok(Drafting::Answered(answer));
        }
        CheckedRequest::draft(catalog, request, asked_at, Told::InBrief).map(Drafting::Drafted)
    }
}

/// Whether a refusal may be due to a catalog that is out of date.
fn is_of_catalog(error: &AllocError) -> bool {
    matches!(error, AllocError::Rule(_) | AllocError::Input(_))
}
