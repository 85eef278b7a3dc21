//! The ledger's failures, by kind of call: those since it last succeeded; and its slow calls. For
//! reports only; decides nothing.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::LedgerError;

/// Kinds of calls whose failures keep a process from issuing or from journaling.
const WATCHED: [&str; 4] = ["append", "take", "seed", "raise"];

/// A failure counts for so long: no later call of its kind may ever show that it is over.
const FRESH: Duration = Duration::from_secs(10);

/// Most characters of a reason that are kept.
const WHY_MAX: usize = 300;

/// From this time on a call is slow.
const SLOW: Duration = Duration::from_secs(1);

/// Time between two lines of the log about slow calls.
const SLOW_PERIOD: Duration = Duration::from_secs(60);

/// Slow calls, which are logged now and then.
#[derive(Debug, Default)]
pub(crate) struct SlowCalls(Mutex<Option<(Instant, u64)>>);

impl SlowCalls {
    /// Notes how long a call took; one that got no lock is logged by its caller.
    pub(crate) fn note(&self, kind: &'static str, took: Duration, failure: Option<&LedgerError>) {
        if took < SLOW || matches!(failure, Some(LedgerError::LockTimeout { .. })) {
            return;
        }
        if let Some(untold) = self.admit() {
            tracing::info!(kind, ?took, untold, "a call to the ledger took long");
        }
    }

    /// Whether one is logged now: then the number of those that were not.
    fn admit(&self) -> Option<u64> {
        let mut told = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match &mut *told {
            Some((at, untold)) if at.elapsed() < SLOW_PERIOD => {
                *untold += 1;
                None
            }
            told => {
                let before = told.replace((Instant::now(), 0));
                Some(before.map_or(0, |(_, untold)| untold))
            }
        }
    }
}

/// The failures.
#[derive(Debug, Default)]
pub(crate) struct CallFailures(Mutex<BTreeMap<&'static str, CallFailure>>);

/// Calls of one kind that fail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallFailure {
    /// Why the last of them failed.
    pub why: String,
    /// Since when they do.
    pub since: Instant,
    /// When the last of them did.
    last: Instant,
}

impl CallFailures {
    /// Notes the outcome of a call.
    pub(crate) fn note(&self, kind: &'static str, failure: Option<&LedgerError>) {
        if !WATCHED.contains(&kind) {
            return;
        }
        let mut call_failures = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match failure {
            // Only failures of the ledger: a lock or a refusal may be of one counter, and of one
            // request.
            Some(error @ LedgerError::Unreachable { .. }) => {
                let (why, now) =
                    (error.to_string().chars().take(WHY_MAX).collect(), Instant::now());
                let since = call_failures.get(kind).filter(|trouble| trouble.is_fresh());
                let since = since.map_or(now, |trouble| trouble.since);
                call_failures.insert(kind, CallFailure { why, since, last: now });
            }
            Some(_) => {}
            None => drop(call_failures.remove(kind)),
        }
    }

    /// The kinds of calls that fail now.
    pub(crate) fn list(&self) -> BTreeMap<&'static str, CallFailure> {
        let mut call_failures = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        call_failures.retain(|_, trouble| trouble.is_fresh());
        call_failures.clone()
    }
}

impl CallFailure {
    fn is_fresh(&self) -> bool {
        self.last.elapsed() < FRESH
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn of_slow_calls_one_a_minute_is_told() {
        let slow = SlowCalls::default();
        assert_eq!([slow.admit(), slow.admit(), slow.admit()], [Some(0), None, None]);
        tokio::time::advance(SLOW_PERIOD).await;
        assert_eq!([slow.admit(), slow.admit()], [Some(2), None]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_kind_of_call_is_in_trouble_from_its_first_failure_until_one_succeeds_or_none_comes()
    {
        let call_failures = CallFailures::default();
        let away =
            |cause: &str| LedgerError::Unreachable { cause: cause.into(), maybe_written: false };
        call_failures.note("other", Some(&away("not watched")));
        call_failures.note("take", Some(&LedgerError::Conflict("of one counter".into())));
        assert!(call_failures.list().is_empty());
        let began = Instant::now();
        for cause in ["first", "second"] {
            call_failures.note("append", Some(&away(cause)));
            tokio::time::advance(FRESH / 2).await;
        }
        let listed = call_failures.list();
        assert!(listed["append"].since == began && listed["append"].why.contains("second"));
        call_failures.note("append", None);
        assert!(call_failures.list().is_empty());
        call_failures.note("take", Some(&away("alone")));
        tokio::time::advance(FRESH).await;
        assert!(call_failures.list().is_empty(), "nobody asked again");
    }
}
