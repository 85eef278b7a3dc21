//! Budgets of bytes: the memory of a process for all bodies that it reads and handles, and for all
//! answers that wait for their readers. Each body and each answer has a bound of its own; these
//! bound their sum, and the part of it that one caller may have.
//!
//! Small ones are never counted, a body of up to 4 KiB and an answer of up to 16 KiB: a connection
//! itself keeps as much, so that a request for one number with such a small body finds room
//! regardless of what others, or the caller's other calls, hold.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};

/// The number of callers that a budget suffices for: each has a part of that size.
const CALLERS_MIN: usize = 16;

/// All bodies together that arrive or are handled.
pub(crate) const BODIES_BYTES_MAX: usize = 64 << 20;

/// All answers together that wait for their readers.
pub(crate) const ANSWERS_BYTES_MAX: usize = 64 << 20;

/// A body up to this size counts in no budget.
pub(crate) const FREE_BYTES_MAX: usize = 4_096;

/// Both budgets of a process. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct Budgets {
    /// Of [`BODIES_BYTES_MAX`].
    pub(crate) bodies: Arc<Budget>,
    /// Of [`ANSWERS_BYTES_MAX`].
    pub(crate) answers: Arc<Budget>,
}

/// So many bytes for all, and a part of them for each caller.
#[derive(Debug)]
pub(crate) struct Budget {
    bytes_max: usize,
    caller_bytes_max: usize,
    sums: Mutex<Sums>,
}

/// The bytes that are held, in all and by caller.
#[derive(Debug, Default)]
struct Sums {
    all: usize,
    of_callers: HashMap<Arc<str>, usize>,
}

/// Bytes that a caller holds; until it is dropped.
#[derive(Debug)]
pub(crate) struct HeldBytes {
    budget: Arc<Budget>,
    caller: Arc<str>,
    bytes: usize,
    /// Those of them that found room: bytes that are held in any case count only for their caller,
    /// so that no other caller is refused for them.
    with_room: usize,
}

impl Budget {
    /// A budget of so many bytes; each caller may hold a sixteenth, and at least `largest`.
    pub(crate) fn new(bytes_max: usize, largest: usize) -> Arc<Self> {
        let caller_bytes_max = (bytes_max / CALLERS_MIN).max(largest);
        Arc::new(Budget { bytes_max, caller_bytes_max, sums: Mutex::default() })
    }

    /// Room for so many bytes of a caller, if there is as much. A caller that holds none gets room
    /// for one item that is larger than its part.
    pub(crate) fn hold(self: &Arc<Self>, caller: &Arc<str>, bytes: usize) -> Option<HeldBytes> {
        let mut held = self.none(caller);
        held.grow(bytes).then_some(held)
    }

    /// Whether there is room for so many bytes of a caller at present.
    pub(crate) fn has_room(&self, caller: &str, bytes: usize) -> bool {
        self.fits(&self.sums(), caller, bytes)
    }

    fn fits(&self, sums: &Sums, caller: &str, bytes: usize) -> bool {
        let own = sums.of_callers.get(caller).copied().unwrap_or(0);
        let has_part = own == 0 || own + bytes <= self.caller_bytes_max;
        has_part && sums.all + bytes.min(self.caller_bytes_max) <= self.bytes_max
    }

    /// Nothing yet, which grows.
    pub(crate) fn none(self: &Arc<Self>, caller: &Arc<str>) -> HeldBytes {
        let (budget, caller) = (Arc::clone(self), Arc::clone(caller));
        HeldBytes { budget, caller, bytes: 0, with_room: 0 }
    }

    fn sums(&self) -> MutexGuard<'_, Sums> {
        self.sums.lock().expect("no holder of this lock panics")
    }
}

impl Sums {
    fn add(&mut self, caller: &Arc<str>, bytes: usize) {
        match self.of_callers.get_mut(caller) {
            Some(own) => *own += bytes,
            None => drop(self.of_callers.insert(Arc::clone(caller), bytes)),
        }
    }

    fn remove(&mut self, caller: &str, bytes: usize) {
        let Some(own) = self.of_callers.get_mut(caller) else { return };
        *own -= bytes;
        if *own == 0 {
            self.of_callers.remove(caller);
        }
    }
}

impl HeldBytes {
    /// Grows to so many bytes, if there is room for them.
    pub(crate) fn grow_to(&mut self, bytes: usize) -> bool {
        self.grow(bytes.saturating_sub(self.bytes))
    }

    /// Holds so many bytes from now on: releases surplus, and takes missing bytes if there is room
    /// for them.
    pub(crate) fn resize(&mut self, bytes: usize) -> bool {
        self.shrink(bytes);
        self.grow_to(bytes)
    }

    /// The same, with or without room: for what can no longer be refused.
    pub(crate) fn resize_at_any_rate(&mut self, bytes: usize) {
        self.shrink(bytes);
        self.grow_at_any_rate(bytes.saturating_sub(self.bytes));
    }

    /// Takes so many more bytes, if there is room for them.
    fn grow(&mut self, by: usize) -> bool {
        if by == 0 {
            return true;
        }
        let mut sums = self.budget.sums();
        let fits = self.budget.fits(&sums, &self.caller, by);
        if fits {
            sums.add(&self.caller, by);
            sums.all += by;
            self.bytes += by;
            self.with_room += by;
        }
        fits
    }

    fn grow_at_any_rate(&mut self, by: usize) {
        if !self.grow(by) {
            self.budget.sums().add(&self.caller, by);
            self.bytes += by;
        }
    }

    fn shrink(&mut self, bytes: usize) {
        let less = self.bytes.saturating_sub(bytes);
        if less == 0 {
            return;
        }
        let mut sums = self.budget.sums();
        sums.remove(&self.caller, less);
        self.bytes -= less;
        sums.all -= self.with_room.saturating_sub(self.bytes);
        self.with_room = self.with_room.min(self.bytes);
    }
}

impl Drop for HeldBytes {
    fn drop(&mut self) {
        self.shrink(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn callers() -> [Arc<str>; 3] {
        ["a".into(), "b".into(), "c".into()]
    }

    fn hold_at_any_rate(budget: &Arc<Budget>, caller: &Arc<str>, bytes: usize) -> HeldBytes {
        let mut held = budget.none(caller);
        held.resize_at_any_rate(bytes);
        held
    }

    #[test]
    fn a_caller_has_its_part_and_all_of_them_have_no_more_than_there_is() {
        let (budget, [a, b, c]) = (Budget::new(1_600, 0), callers());
        let first = budget.hold(&a, 100).expect("its part");
        assert!(budget.hold(&a, 1).is_none() && !budget.has_room(&a, 1));
        let mut other = budget.none(&b);
        assert!(other.grow(60) && other.grow(40) && !other.grow(1));
        drop(first);
        assert!(budget.hold(&a, 60).is_some(), "given back");
        assert!(budget.has_room(&a, 100) && budget.has_room(&a, 101), "one that is larger");
        let forced = hold_at_any_rate(&budget, &c, 1_500);
        assert!(budget.hold(&a, 1).is_none(), "all together");
        drop((other, forced));
        let sums = budget.sums();
        assert!(sums.all == 0 && sums.of_callers.is_empty(), "nobody is remembered");
    }

    #[test]
    fn what_is_held_at_any_rate_keeps_its_caller_out_and_nobody_else() {
        let (budget, [a, b, _]) = (Budget::new(1_600, 0), callers());
        let mut reserved = budget.hold(&a, 80).expect("its part");
        let forced: Vec<_> = (0..100).map(|_| hold_at_any_rate(&budget, &a, 90)).collect();
        assert!(budget.hold(&a, 1).is_none(), "it holds more than its part");
        let other = budget.hold(&b, 100).expect("the part of another one");
        reserved.resize_at_any_rate(5_000);
        assert_eq!(budget.sums().all, 180, "what found room");
        assert!(reserved.resize(50) && !reserved.resize(60));
        assert_eq!(budget.sums().all, 150);
        drop(forced);
        assert!(reserved.resize(100) && !reserved.resize(101));
        drop((reserved, other));
        let sums = budget.sums();
        assert!(sums.all == 0 && sums.of_callers.is_empty(), "nobody is remembered");
    }

    #[test]
    fn the_largest_thing_has_room_and_one_that_is_larger_still_where_its_caller_has_no_other() {
        let [a, b, _] = callers();
        let budget = Budget::new(1_600, 700);
        let _first = budget.hold(&a, 700).expect("as large as any");
        let budget = Budget::new(1_600, 0);
        let large = budget.hold(&a, 5_000).expect("it holds nothing else");
        assert!(budget.hold(&b, 1).is_none(), "it is counted as large as it is");
        drop(large);
        assert!(budget.hold(&b, 1).is_some());
    }
}
