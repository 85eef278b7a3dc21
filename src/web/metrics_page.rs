//! The text of `/metrics`: made at most once a second for all callers, and shared by them.
//!
//! It walks every series and drains samples, and is as long as there are series: a caller that had
//! it made for every request would burden all others.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Bytes;
use tokio::sync::{Mutex, OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinError;
use tokio::time::{Instant, sleep_until};

/// Time from the making of one text to that of the next.
const PERIOD: Duration = Duration::from_secs(1);

/// Texts in memory at a time: the newest, and those that slow readers hold. If slow readers hold
/// them all, every caller gets the newest one, however old.
const TEXTS_MAX: usize = 4;

/// Makes the text. Cheap to clone.
#[derive(Clone)]
pub(crate) struct MetricsPage {
    make: Arc<dyn Fn() -> String + Send + Sync>,
    /// Held while one is made.
    newest: Arc<Mutex<Option<Made>>>,
    places: Arc<Semaphore>,
    period: Duration,
}

struct Made {
    /// When its making began.
    at: Instant,
    text: Bytes,
}

/// A text in its place.
struct Held {
    text: String,
    _place: OwnedSemaphorePermit,
}

impl AsRef<[u8]> for Held {
    fn as_ref(&self) -> &[u8] {
        self.text.as_bytes()
    }
}

impl MetricsPage {
    /// A page whose text comes from `make`, which may take its time.
    pub(crate) fn new(make: impl Fn() -> String + Send + Sync + 'static) -> Self {
        let places = Arc::new(Semaphore::new(TEXTS_MAX));
        MetricsPage { make: Arc::new(make), newest: Arc::default(), places, period: PERIOD }
    }

    /// A text that is newer than the request; a request within a second of the last text waits for
    /// the next, and all waiting requests share it.
    ///
    /// # Errors
    /// When the making panics.
    pub(crate) async fn text(&self) -> Result<Bytes, JoinError> {
        let asked = Instant::now();
        let mut newest = Arc::clone(&self.newest).lock_owned().await;
        if let Some(made) = &*newest {
            if made.at > asked {
                return Ok(made.text.clone());
            }
            sleep_until(made.at + self.period).await;
        }
        let place = match (Arc::clone(&self.places).try_acquire_owned(), &*newest) {
            (Ok(place), _) => place,
            (Err(_), Some(made)) => return Ok(made.text.clone()),
            (Err(_), None) => unreachable!("a text that nobody has made is held by nobody"),
        };
        let make = Arc::clone(&self.make);
        // Continues if the caller leaves, and the next one waits for it.
        let making = tokio::task::spawn_blocking(move || {
            let at = Instant::now();
            let text = Bytes::from_owner(Held { text: make(), _place: place });
            *newest = Some(Made { at, text: text.clone() });
            text
        });
        making.await
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    /// A page whose text is the number of times it was made.
    fn page() -> MetricsPage {
        let made = AtomicUsize::new(0);
        MetricsPage::new(move || made.fetch_add(1, Ordering::Relaxed).to_string())
    }

    #[tokio::test(start_paused = true)]
    async fn all_who_ask_within_a_second_wait_for_one_text_that_is_not_older_than_their_question() {
        let page = page();
        assert_eq!(page.text().await.expect("made"), "0");
        let began = Instant::now();
        let asked = (0..100).map(|_| page.text());
        for text in futures_util::future::join_all(asked).await {
            assert_eq!(text.expect("made"), "1");
        }
        assert!(began.elapsed() <= PERIOD);
        tokio::time::advance(PERIOD * 2).await;
        let began = Instant::now();
        assert_eq!(page.text().await.expect("made"), "2");
        assert!(began.elapsed() < PERIOD, "who comes later waits for nothing");
    }

    #[tokio::test(start_paused = true)]
    async fn texts_that_are_held_are_so_many_and_the_newest_is_given_again() {
        let page = page();
        let mut held = Vec::new();
        for _ in 0..3 * TEXTS_MAX {
            held.push(page.text().await.expect("made"));
        }
        let mut different = held.clone();
        different.dedup();
        assert_eq!(different.len(), TEXTS_MAX);
        drop((held, different));
        assert_eq!(page.text().await.expect("made"), TEXTS_MAX.to_string());
    }
}
