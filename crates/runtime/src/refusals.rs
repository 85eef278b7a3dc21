//! Log lines of what is refused, bounded per second: whoever is refused as fast as it can ask would
//! fill the disk, and pay nothing. What is let in is no business of these.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// How long lines are counted together.
const SECOND: Duration = Duration::from_secs(1);

/// Bounds the lines of refusals. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Refusals {
    per_second_max: u32,
    /// The metric that has them all.
    counted_by: &'static str,
    tally: Arc<Mutex<Tally>>,
}

#[derive(Debug)]
struct Tally {
    /// When this second began.
    since: Instant,
    /// Lines written in it.
    written: u32,
    /// Lines left out that nobody was told of.
    left_out: u64,
}

impl Refusals {
    /// At most so many lines in a second, of what a metric counts.
    #[must_use]
    pub fn new(per_second_max: u32, counted_by: &'static str) -> Self {
        let tally = Tally { since: Instant::now(), written: 0, left_out: 0 };
        Refusals { per_second_max, counted_by, tally: Arc::new(Mutex::new(tally)) }
    }

    /// Whether the line of a refusal is to be written. How many are not is said when the second is
    /// over.
    ///
    /// # Panics
    /// Where another holder of the lock did, which none does.
    #[must_use]
    pub fn admit(&self) -> bool {
        let mut tally = self.tally.lock().expect("no holder of this lock panics");
        if tally.since.elapsed() >= SECOND {
            (tally.since, tally.written) = (Instant::now(), 0);
        }
        if tally.written < self.per_second_max {
            tally.written += 1;
            return true;
        }
        tally.left_out += 1;
        let is_first = tally.left_out == 1;
        drop(tally);
        if is_first && let Ok(runtime) = tokio::runtime::Handle::try_current() {
            let refusals = self.clone();
            runtime.spawn(async move {
                tokio::time::sleep(SECOND).await;
                refusals.tell();
            });
        }
        false
    }

    /// Says how many lines were left out.
    fn tell(&self) {
        let mut tally = self.tally.lock().expect("no holder of this lock panics");
        let left_out = std::mem::take(&mut tally.left_out);
        drop(tally);
        tracing::warn!(
            left_out,
            per_second_max = self.per_second_max,
            "refusals that have no line of their own; {} counts them all",
            self.counted_by
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_has_so_many_lines_and_the_next_one_as_many() {
        let refusals = Refusals::new(3, "numerator_problems_total");
        let admitted = |calls: usize| (0..calls).filter(|_| refusals.admit()).count();
        assert_eq!(admitted(10), 3);
        refusals.tally.lock().expect("lock").since -= SECOND;
        assert_eq!(admitted(10), 3);
        assert_eq!(refusals.tally.lock().expect("lock").left_out, 14);
    }
}
