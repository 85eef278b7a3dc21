//! Waits for a condition: checks it again and again, up to a limit.

use std::fmt::Display;
use std::time::Duration;

use tokio::time::{Instant, sleep};

/// Wait between two questions.
const PAUSE: Duration = Duration::from_millis(20);

/// Asks until the answer is `Ok`, and returns it.
///
/// # Panics
/// With the last `Err`, when the limit is over.
pub async fn eventually<T, E: Display>(
    limit: Duration,
    mut ask: impl AsyncFnMut() -> Result<T, E>,
) -> T {
    let deadline = Instant::now() + limit;
    loop {
        match ask().await {
            Ok(answer) => return answer,
            Err(seen) => assert!(Instant::now() < deadline, "not within {limit:?}: {seen}"),
        }
        sleep(PAUSE).await;
    }
}
