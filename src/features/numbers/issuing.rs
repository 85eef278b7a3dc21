//! The only way from routes to numbers, and to anything that counts as one: new requests count
//! against the caller's limits, and numbers that it already has are shown regardless of them.
//!
//! A limit never refuses what it admitted before: when it is exceeded, an earlier result is
//! searched for, and nothing is taken, before the request is refused.

use std::sync::Arc;

use crate::engine::allocator::{AllocError, Hints, Issued, NumberTaken, Request};
use crate::web::App;
use crate::web::admission::no_place;
use crate::web::limited::{Charge, Limited};
use crate::web::middleware::Caller;
use crate::web::problem::{Problem, Slug};

/// Why a call got no number.
#[derive(Debug)]
pub(crate) enum NotIssued {
    /// A limit, or no place in which to look.
    Refused(Problem),
    /// Anything else.
    Alloc(AllocError),
}

impl From<NotIssued> for Problem {
    fn from(why: NotIssued) -> Self {
        match why {
            NotIssued::Refused(problem) => problem,
            NotIssued::Alloc(error) => error.into(),
        }
    }
}

impl App {
    /// Takes the numbers that a caller requests, and notes which path served it.
    pub(crate) async fn issue(
        &self,
        caller: &Caller,
        request: Request,
    ) -> Result<Issued, NotIssued> {
        self.issue_hinting(caller, request, &Hints::default()).await
    }

    /// The same for one of several, which share the hints in their refusals.
    pub(crate) async fn issue_hinting(
        &self,
        caller: &Caller,
        request: Request,
        hints: &Hints,
    ) -> Result<Issued, NotIssued> {
        let count = request.count;
        let mut charge = None;
        if let Some(limited) = &caller.limited {
            let own = match limited.charge(count) {
                Ok(own) => own,
                // Boxed: few calls are over a limit.
                Err(_) => match Box::pin(self.beyond(limited, caller, &request)).await? {
                    Beyond::Has(issued) => return Ok(issued),
                    Beyond::Charged(own) => own,
                },
            };
            charge = Some(OpenCharge::of(self, caller, &request, own));
        }
        let issued = self.service.allocator.issue_hinting(request, caller.by, hints).await;
        if let Some(charge) = charge {
            charge.settle(kept_of(&issued, count));
        }
        let issued = issued.map_err(NotIssued::Alloc)?;
        caller.served_by.note(issued.entry.path);
        Ok(issued)
    }

    /// The result of a request that a limit refuses: a caller that has its number is shown it.
    async fn beyond(
        &self,
        limited: &Arc<Limited>,
        caller: &Caller,
        request: &Request,
    ) -> Result<Beyond, NotIssued> {
        let permit = limited.permit(self.work_permits.to_read(caller)).await;
        let permit = permit.ok_or_else(|| NotIssued::Refused(no_place()))?;
        let found = self.service.allocator.issued_before(request.clone(), caller.by).await;
        // Other charges of the call may take time: no place is held meanwhile.
        drop(permit);
        match found {
            Ok(Some(issued)) => {
                caller.served_by.note(issued.entry.path);
                Ok(Beyond::Has(issued))
            }
            Err(error) if error.retry_useful() || is_of_earlier(&error) => {
                Err(NotIssued::Alloc(error))
            }
            // A limit takes precedence over all other flaws. Others of a list may have turned out
            // to take nothing.
            Ok(None) | Err(_) => {
                limited.settled().await;
                limited.charge(request.count).map(Beyond::Charged).map_err(NotIssued::Refused)
            }
        }
    }

    /// Does what counts as one number, though it takes none. What the caller did before does not
    /// count, and is searched for if a limit refuses more.
    pub(crate) async fn noted<T>(
        &self,
        caller: &Caller,
        noting: impl Future<Output = Result<T, Problem>>,
        is_repeat: impl FnOnce(&T) -> bool,
        looking: impl Future<Output = Result<Option<T>, Problem>>,
    ) -> Result<T, Problem> {
        let Some(limited) = &caller.limited else { return noting.await };
        let charge = match limited.charge(1) {
            Ok(charge) => charge,
            Err(refused) => return looking.await?.ok_or(refused),
        };
        let noted = noting.await;
        charge.settle(match &noted {
            Ok(done) => u64::from(!is_repeat(done)),
            // A request that names a missing document counts.
            Err(problem) if problem.slug() == Slug::DocumentNotNumbered => 1,
            Err(problem) => u64::from(!problem.is_untaken_for_now()),
        });
        noted
    }
}

/// The outcome of a request that a limit refuses.
enum Beyond {
    /// It has its number.
    Has(Issued),
    /// It is within the limit after all.
    Charged(Charge),
}

/// Whether a refusal is about a number that was issued before.
fn is_of_earlier(error: &AllocError) -> bool {
    matches!(
        error,
        AllocError::DocumentNumbered { .. }
            | AllocError::DocumentReserved { .. }
            | AllocError::DocumentArchived { .. }
            | AllocError::KeyReused
    )
}

/// How many of these numbers count, once the outcome is known: those that were taken, or may have
/// been; one for a request that is refused for its content; none of what the caller has, or the
/// service could not give.
fn kept_of(issued: &Result<Issued, AllocError>, count: u64) -> u64 {
    match issued {
        Ok(issued) if issued.replayed => 0,
        Ok(_) => count,
        Err(error) if error.number_taken() == NumberTaken::Maybe => count,
        Err(
            AllocError::DocumentNumbered { number: Some(_) }
            | AllocError::DocumentReserved { number: Some(_) },
        ) => 0,
        // Its source was queried.
        Err(AllocError::Source(_)) => 1,
        Err(error) if error.retry_useful() => 0,
        Err(_) => 1,
    }
}

/// The open charge of a request that is being served. If the client of a person leaves before the
/// outcome is known, the outcome is queried once more.
struct OpenCharge {
    charge: Option<Charge>,
    again: Option<Box<(App, Caller, Request)>>,
}

impl OpenCharge {
    fn of(app: &App, caller: &Caller, request: &Request, charge: Charge) -> Self {
        let has_name = request.document_id.is_some() || request.idempotency_key.is_some();
        let again = (has_name && charge.counts_numbers())
            .then(|| Box::new((app.clone(), caller.clone(), request.clone())));
        OpenCharge { charge: Some(charge), again }
    }

    fn settle(mut self, kept: u64) {
        if let Some(charge) = self.charge.take() {
            charge.settle(kept);
        }
    }
}

impl Drop for OpenCharge {
    fn drop(&mut self) {
        let (Some(charge), Some(again)) = (self.charge.take(), self.again.take()) else { return };
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        runtime.spawn(async move {
            let (app, caller, request) = *again;
            let Some(limited) = &caller.limited else { return };
            let Some(_place) = limited.permit(app.work_permits.to_read(&caller)).await else {
                return;
            };
            // Queued after what may still be in progress for the same caller.
            if let Ok(None) = app.service.allocator.issued_before(request, None).await {
                charge.settle(0);
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::allocator::Unavailable;

    #[test]
    fn what_took_nothing_counts_for_nothing_unless_the_request_was_wrong() {
        let unavailable =
            |taken| AllocError::Unavailable { why: Unavailable::Ledger, retry_after_ms: 1, taken };
        let wrong = || AllocError::Field { field: "count", reason: String::new() };
        let own = AllocError::DocumentNumbered { number: Some("A-1".into()) };
        for (error, kept) in [
            (unavailable(NumberTaken::No), 0),
            (unavailable(NumberTaken::Maybe), 5),
            (AllocError::TimedOut { taken: NumberTaken::No }, 0),
            (AllocError::TimedOut { taken: NumberTaken::Maybe }, 5),
            (wrong(), 1),
            (own, 0),
            (AllocError::DocumentNumbered { number: None }, 1),
            (AllocError::KeyReused, 1),
        ] {
            assert_eq!(kept_of(&Err(error.clone()), 5), kept, "{error}");
        }
    }
}
