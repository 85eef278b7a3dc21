//! How far the sweeps of this process have come: the counter that the last one ended with, and
//! reservations that the ledger refuses to end or to journal. In memory alone: nothing is lost with
//! it.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard};

/// For how long a reservation that the ledger refuses is passed over, in microseconds.
const PASSED_OVER_US: i64 = 5_000_000;

/// Most of them that are remembered. Further ones are found anew by each sweep.
const PASSED_OVER_MAX: usize = 1_000;

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct SweepCourse(Mutex<Course>);

#[derive(Debug, Default)]
struct Course {
    /// The counter with which the last sweep ended; 0 before the first.
    counter_id: i64,
    /// Until when reservations are passed over, by their ids: microseconds by the clock of this
    /// process.
    passed_over: HashMap<Vec<u8>, i64>,
}

impl SweepCourse {
    /// The counter behind which the next sweep begins.
    pub(super) fn place(&self) -> i64 {
        self.course().counter_id
    }

    /// A sweep is done with a counter, or could not do it.
    pub(super) fn pass(&self, counter_id: i64) {
        self.course().counter_id = counter_id;
    }

    /// Reservations that are passed over now.
    pub(super) fn passed_over(&self, now_us: i64) -> Vec<Vec<u8>> {
        let course = self.course();
        let now = course.passed_over.iter().filter(|(_, until_us)| **until_us > now_us);
        now.map(|(id, _)| id.clone()).collect()
    }

    /// Passes a reservation over for a while; whether it is the first time.
    pub(super) fn pass_over(&self, id: &[u8], now_us: i64) -> bool {
        let mut course = self.course();
        let passed_over = &mut course.passed_over;
        if passed_over.len() >= PASSED_OVER_MAX {
            passed_over.retain(|_, until_us| *until_us > now_us);
        }
        let is_known = passed_over.contains_key(id);
        if is_known || passed_over.len() < PASSED_OVER_MAX {
            passed_over.insert(id.to_vec(), now_us.saturating_add(PASSED_OVER_US));
        }
        !is_known
    }

    fn course(&self) -> MutexGuard<'_, Course> {
        self.0.lock().expect("no holder of this lock panics")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_refused_is_passed_over_for_a_while_and_named_once() {
        let course = SweepCourse::default();
        assert!(course.pass_over(b"a", 1));
        assert_eq!(course.passed_over(PASSED_OVER_US), [b"a".to_vec()]);
        assert!(course.passed_over(PASSED_OVER_US + 1).is_empty(), "it is tried again");
        assert!(!course.pass_over(b"a", PASSED_OVER_US + 1));
        assert_eq!(course.passed_over(PASSED_OVER_US + 2).len(), 1);
    }

    #[test]
    fn so_many_are_remembered_and_no_more() {
        let course = SweepCourse::default();
        for id in 0..=PASSED_OVER_MAX {
            course.pass_over(&id.to_be_bytes(), 0);
        }
        assert_eq!(course.passed_over(1).len(), PASSED_OVER_MAX);
        course.pass_over(b"later", PASSED_OVER_US);
        assert_eq!(course.passed_over(PASSED_OVER_US), [b"later".to_vec()], "room is made");
    }
}
