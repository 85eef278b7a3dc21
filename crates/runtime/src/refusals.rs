//! Log lines of refusals, bounded per second: a caller that is refused as fast as it can ask would
//! fill the disk at no cost to itself. Admitted requests are not affected.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// How long lines are counted together.
const SECOND: Duration = Duration::from_secs(1);

/// Bounds the lines of refusals. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Refusals {
    per_second_max: u32,
    /// The metric that counts all of them.
    counted_by: &'static str,
    tally: Arc<Mutex<Tally>>,
}

#[derive(Debug)]
struct Tally {
    /// When this second began.
    since: Instant,
    /// Lines written in it.
    written: u32,
    /// Lines left out and not yet reported.
    left_out: u64,
}

impl Refusals {
    /// Writes at most `per_second_max` lines in a second, of what the metric `counted_by` counts.
    #[must_use]
    pub fn new(per_second_max: u32, counted_by: &'static str) -> Self {
        let tally = Tally { since: Instant::now(), written: 0, left_out: 0 };
        Refusals { per_second_max, counted_by, tally: Arc::new(Mutex::new(tally)) }
    }

    /// Whether the line of a refusal is to be written. How many lines were left out is logged when
    /// the second is over.
    ///
    /// # Panics
    /// When another holder of the lock panicked, which none does.
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

    /// Logs how many lines were left out.
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
