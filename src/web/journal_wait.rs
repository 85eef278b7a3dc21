//! Waits for a number whose record may be on its way to the journal.

use std::time::Duration;

use tokio::time::Instant;

use crate::backoff::Backoff;

/// Longest wait for the journal to have a number that was just issued.
const JOURNAL_WAIT: Duration = Duration::from_secs(2);

/// Shortest and longest wait between two checks of it.
const POLL_DELAYS: (Duration, Duration) = (Duration::from_millis(20), Duration::from_millis(500));

/// Which try it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TryOf {
    /// The first one, which also checks whether the number belongs to a range.
    First,
    /// A later one: only missing records are searched for.
    Later,
}

/// Retries for a short time while a number is missing: its record may be on its way.
///
/// # Errors
/// Those of the last try.
pub(crate) async fn once_journaled<T, E, F: Future<Output = Result<T, E>>>(
    is_missing: impl Fn(&E) -> bool,
    mut attempt: impl FnMut(TryOf) -> F,
) -> Result<T, E> {
    let deadline = Instant::now() + JOURNAL_WAIT;
    let mut wait = Backoff::new(POLL_DELAYS.0, POLL_DELAYS.1);
    let mut try_of = TryOf::First;
    loop {
        match attempt(std::mem::replace(&mut try_of, TryOf::Later)).await {
            Err(error) if is_missing(&error) && Instant::now() < deadline => wait.wait().await,
            tried => return tried,
        }
    }
}
