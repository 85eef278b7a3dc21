//! What a refused change of series reveals about the others that it conflicts with: everything
//! about those that the caller sees; of another, only that it exists.

use numbering::{Ambiguity, RuleError};

use crate::ledger::{LedgerError, SeriesRefusal, SeriesVersion};
use crate::web::App;
use crate::web::middleware::Caller;
use crate::web::problem::Problem;

impl Caller {
    /// The problem of a change of the series with this code that the ledger refused, or did not
    /// confirm.
    pub(crate) fn told(&self, app: &App, own: &str, error: LedgerError) -> Problem {
        match &error {
            LedgerError::Series(refusal) if !self.may_be_told(app, own, refusal) => {
                let whole = Problem::from(refusal);
                let told = Problem::new(whole.slug(), beyond(refusal));
                whole.wrong_field().map_or(told.clone(), |field| told.of_field(field))
            }
            _ => Problem::of_change(error),
        }
    }

    /// Whether a refusal names no series that it does not see, and no version that it might not.
    fn may_be_told(&self, app: &App, own: &str, refusal: &SeriesRefusal) -> bool {
        if self.scope().is_everything() {
            return true;
        }
        let catalog = app.service.allocator.catalog();
        let is_seen = |(code, version): (&str, Option<u32>)| {
            let sees = |one: &SeriesVersion| match version {
                None => self.sees_series(one),
                // Its earlier definition may have been outside the caller's reach.
                Some(_) => self.must_hold(one).is_ok(),
            };
            code == own || catalog.known().any(|(one, _)| one.definition.code == code && sees(one))
        };
        let is_told = |ambiguity: &Ambiguity| match ambiguity {
            Ambiguity::Collision { first, second, .. }
            | Ambiguity::Readings { first, second, .. } => {
                [first, second].into_iter().all(|one| is_seen((&one.series, one.version)))
            }
            Ambiguity::Unproven { subject } => *subject == format!("series {own}"),
        };
        match refusal {
            SeriesRefusal::Rule(
                RuleError::Ambiguous { first, second, .. }
                | RuleError::Zones { first, second, .. }
                | RuleError::Unsettled { first, second, .. },
            ) => [first, second].into_iter().all(|code| is_seen((code, None))),
            SeriesRefusal::Rule(_) => false,
            SeriesRefusal::Ambiguous(ambiguity) => is_told(ambiguity),
            SeriesRefusal::Hasty(hasty) => is_told(&hasty.ambiguity),
            // The number may be one of a project that the caller does not see.
            SeriesRefusal::ReadsKept { .. } => false,
            _ => true,
        }
    }
}

/// What is revealed about a series that the caller does not see.
fn beyond(refusal: &SeriesRefusal) -> &'static str {
    match refusal {
        SeriesRefusal::Rule(_) => {
            "another series, beyond your reach, serves some of the same requests equally well; \
             change `serves`, or ask an administrator who reaches both"
        }
        _ => {
            "a number of the series could have the text of one of another series, which is beyond \
             your reach; begin the template with a prefix of its own, or ask an administrator who \
             reaches both"
        }
    }
}
