//! The earlier number of a request: looked up without taking anything, for a caller that gets no
//! new number now.

use tokio::time::Instant;

use super::answers;
use super::drafted::{Drafting, Purpose};
use super::pending_request::CheckedRequest;
use super::{AllocError, Allocator, Hints, Issued, Request};

impl Allocator {
    /// The number that a request got from an earlier call, if it got one; for a caller that waits
    /// no longer than until `by`. Takes nothing.
    ///
    /// # Errors
    /// Those of [`Allocator::issue`] that come before anything is taken, or are about an earlier
    /// number.
    pub async fn issued_before(
        &self,
        request: Request,
        by: Option<Instant>,
    ) -> Result<Option<Issued>, AllocError> {
        if request.document_id.is_none() && request.idempotency_key.is_none() {
            return Ok(None);
        }
        let (request, context) = (request.within_scope(), &self.shared.context);
        let began = Instant::now();
        let limit = began + context.settings.time_limit;
        let by = by.map_or(limit, |by| by.min(limit));
        // Hints are for callers within the limit.
        let brief = (Purpose::Issue, &Hints::first(0));
        let drafted = match self.draft(&request, (began, by), brief).await? {
            Drafting::Answered(answer) => return answer.map(Some),
            Drafting::Drafted(drafted) => drafted,
        };
        let clock = context.clock.as_ref();
        let served = CheckedRequest::of(request.clone(), drafted, clock)?.served;
        let question = CheckedRequest::asking_again(&served, &request, clock.now_us());
        let found = self.ask(question, by).await?;
        if let Some(issued) = &found {
            answers::count(&context.metrics, began, &Ok(issued.clone()));
        }
        Ok(found)
    }
}
