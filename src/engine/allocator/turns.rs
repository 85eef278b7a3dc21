//! What waits for a worker, one line for each caller, and the lines in turns: a thousand numbers
//! that one caller asks for at once wait in its own line, and delay no other caller.
//!
//! Every step takes the same time however much waits, but for one that drops empty lines; and
//! allocates nothing once a line has grown. A line stays for its caller's next item: empty ones are
//! dropped when they are the majority, since an issuer of JWTs may name any number of callers.

use std::collections::{HashMap, VecDeque};

/// Room that an empty line keeps.
const KEPT_MAX: usize = 2_048;

/// Empty lines that are kept, in addition to as many as there are others.
const EMPTY_MAX: usize = 256;

/// A queue in which callers take turns.
#[derive(Debug)]
pub(super) struct Turns<T> {
    /// Before all others: what had its turn and was put back.
    first: VecDeque<T>,
    lines: Vec<Line<T>>,
    by_caller: HashMap<Box<str>, usize>,
    /// The lines in which something waits, the next one first.
    order: VecDeque<usize>,
    /// The line that grew last: most requests come from few callers.
    latest: usize,
    len: usize,
    /// How much may wait in one line.
    line_max: usize,
    caller_of: fn(&T) -> &str,
}

#[derive(Debug)]
struct Line<T> {
    caller: Box<str>,
    waiting: VecDeque<T>,
}

impl<T> Turns<T> {
    /// A queue whose lines take so much each; whose line something waits in.
    pub(super) fn new(line_max: usize, caller_of: fn(&T) -> &str) -> Self {
        Turns {
            first: VecDeque::new(),
            lines: Vec::new(),
            by_caller: HashMap::new(),
            order: VecDeque::new(),
            latest: 0,
            len: 0,
            line_max,
            caller_of,
        }
    }

    /// How much waits.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Lets something wait at the end of its caller's line; gives it back where that is full.
    pub(super) fn push(&mut self, item: T) -> Result<(), T> {
        let line = self.line_of(&item);
        if self.lines[line].waiting.len() >= self.line_max {
            return Err(item);
        }
        self.append(line, item);
        Ok(())
    }

    /// The same for what was admitted before: no line is too full for it.
    pub(super) fn push_again(&mut self, item: T) {
        let line = self.line_of(&item);
        self.append(line, item);
    }

    /// Puts something before all others.
    pub(super) fn push_first(&mut self, item: T) {
        self.first.push_front(item);
        self.len += 1;
    }

    /// What is next.
    pub(super) fn pop(&mut self) -> Option<T> {
        let item = self.first.pop_front().or_else(|| self.pop_in_turn())?;
        self.len -= 1;
        Some(item)
    }

    fn pop_in_turn(&mut self) -> Option<T> {
        let line = self.order.pop_front()?;
        let waiting = &mut self.lines[line].waiting;
        let item = waiting.pop_front();
        if !waiting.is_empty() {
            self.order.push_back(line);
        } else if waiting.capacity() > KEPT_MAX {
            *waiting = VecDeque::new();
        }
        item
    }

    /// Keeps what should continue to wait.
    pub(super) fn retain(&mut self, keep: impl Fn(&T) -> bool) {
        self.first.retain(&keep);
        self.lines.iter_mut().for_each(|line| line.waiting.retain(&keep));
        self.order.retain(|line| !self.lines[*line].waiting.is_empty());
        self.len = self.first.len();
        self.len += self.lines.iter().map(|line| line.waiting.len()).sum::<usize>();
    }

    fn append(&mut self, line: usize, item: T) {
        let waiting = &mut self.lines[line].waiting;
        if waiting.is_empty() {
            self.order.push_back(line);
        }
        waiting.push_back(item);
        self.len += 1;
    }

    fn line_of(&mut self, item: &T) -> usize {
        let caller = (self.caller_of)(item);
        if self.lines.get(self.latest).is_some_and(|line| *line.caller == *caller) {
            return self.latest;
        }
        self.latest = match self.by_caller.get(caller) {
            Some(line) => *line,
            None => {
                if self.lines.len() >= 2 * self.order.len() + EMPTY_MAX {
                    self.let_go_of_empty_lines();
                }
                self.by_caller.insert(caller.into(), self.lines.len());
                self.lines.push(Line { caller: caller.into(), waiting: VecDeque::new() });
                self.lines.len() - 1
            }
        };
        self.latest
    }

    fn let_go_of_empty_lines(&mut self) {
        let lines = std::mem::take(&mut self.lines);
        self.by_caller.clear();
        let mut moved = vec![0; lines.len()];
        for (before, line) in lines.into_iter().enumerate() {
            if !line.waiting.is_empty() {
                moved[before] = self.lines.len();
                self.by_caller.insert(line.caller.clone(), self.lines.len());
                self.lines.push(line);
            }
        }
        self.order.iter_mut().for_each(|line| *line = moved[*line]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Item = (&'static str, i32);

    fn turns(line_max: usize) -> Turns<Item> {
        Turns::new(line_max, |(caller, _)| caller)
    }

    fn all(turns: &mut Turns<Item>) -> Vec<i32> {
        std::iter::from_fn(|| turns.pop()).map(|(_, item)| item).collect()
    }

    #[test]
    fn callers_take_turns_and_each_keeps_its_order() {
        let mut turns = turns(100);
        for item in [("a", 1), ("a", 2), ("a", 3), ("b", 4), ("a", 5), ("c", 6), ("b", 7)] {
            turns.push(item).expect("room");
        }
        assert_eq!(turns.len(), 7);
        assert_eq!(all(&mut turns), [1, 4, 6, 2, 7, 3, 5]);
        assert!(turns.is_empty());
        turns.push(("b", 8)).expect("room");
        turns.push(("a", 9)).expect("room");
        assert_eq!(all(&mut turns), [8, 9], "who was away has its turn again");
    }

    #[test]
    fn one_who_comes_after_a_thousand_of_another_waits_for_one_of_them() {
        let mut turns = turns(1_000);
        (0..1_000).for_each(|item| turns.push(("heavy", item)).expect("room"));
        turns.push(("light", -1)).expect("room");
        assert_eq!((turns.pop(), turns.pop()), (Some(("heavy", 0)), Some(("light", -1))));
    }

    #[test]
    fn a_full_line_refuses_and_leaves_the_others_room() {
        let mut turns = turns(2);
        assert!(turns.push(("a", 1)).is_ok() && turns.push(("a", 2)).is_ok());
        assert_eq!(turns.push(("a", 3)), Err(("a", 3)));
        turns.push_again(("a", 4));
        assert!(turns.push(("b", 5)).is_ok());
        assert_eq!(all(&mut turns), [1, 5, 2, 4]);
    }

    #[test]
    fn what_is_put_back_comes_first_and_what_is_given_up_has_no_turn() {
        let mut turns = turns(10);
        (1..=3).for_each(|item| turns.push(("a", item)).expect("room"));
        turns.push(("b", 4)).expect("room");
        turns.push_first(("a", 6));
        turns.push_first(("b", 5));
        turns.retain(|(_, item)| ![6, 4, 2].contains(item));
        assert_eq!(turns.len(), 3);
        assert_eq!(all(&mut turns), [5, 1, 3]);
    }

    #[test]
    fn callers_that_came_once_leave_no_line_and_those_that_wait_keep_their_turns() {
        let mut turns: Turns<(String, i32)> = Turns::new(10, |(caller, _)| caller.as_str());
        let item = |caller: i32, item| (format!("c{caller}"), item);
        (0..3).for_each(|place| turns.push(item(place, -1 - place)).expect("room"));
        turns.push(item(1, -4)).expect("room");
        for caller in 10..10_000 {
            turns.push(item(caller, caller)).expect("room");
            turns.retain(|(_, item)| *item < 0);
        }
        let most = 2 * 4 + EMPTY_MAX;
        assert!(turns.lines.len() <= most && turns.by_caller.len() <= most);
        let left: Vec<i32> = std::iter::from_fn(|| turns.pop()).map(|(_, item)| item).collect();
        assert_eq!(left, [-1, -2, -3, -4]);
        for caller in 10..10_000 {
            turns.push(item(caller, caller)).expect("room");
            assert_eq!(turns.pop(), Some(item(caller, caller)));
        }
        assert!(turns.lines.len() <= most && turns.by_caller.len() <= most);
        let indices = turns.lines.iter().map(|line| turns.by_caller[&line.caller]);
        assert!(indices.eq(0..turns.lines.len()), "each is found");
        assert!((0..1_000).all(|caller| turns.push(item(caller, caller)).is_ok()));
        let popped: Vec<i32> = std::iter::from_fn(|| turns.pop()).map(|(_, item)| item).collect();
        assert_eq!(popped, (0..1_000).collect::<Vec<_>>());
    }

    #[test]
    fn a_line_that_was_long_keeps_no_room() {
        let mut turns = turns(usize::MAX);
        (0..10_000).for_each(|item| turns.push(("a", item)).expect("room"));
        assert_eq!(all(&mut turns).len(), 10_000);
        assert!(turns.lines[0].waiting.capacity() <= KEPT_MAX);
        assert_eq!(turns.lines.len(), 1);
    }
}
