//! The arithmetic of an account: walks the rows that represent the values of a counter, in order,
//! and finds the missing values and the duplicates. Pure; takes rows as they are, even altered
//! ones.

use crate::{AccountEntry, AccountTally, EntryKind, EntryRow, Run};

/// Stretches that are listed: a counter has as many as its step was changed.
const STRETCHES_MAX: usize = 100;

/// A row, as far as values go.
#[derive(Clone, Debug)]
pub(crate) struct Met {
    pub(crate) run: Run,
    pub(crate) what: What,
}

/// What a row represents.
#[derive(Clone, Debug)]
pub(crate) enum What {
    /// Numbers that were issued here.
    Issued,
    /// Numbers of another system.
    Imported,
    /// Numbers that were given by hand.
    Registered,
    /// Numbers that are kept as written.
    AsWritten,
    /// Numbers whose rows are in the archive.
    Archived,
    /// No number in the journal.
    Entry(EntryKind, EntryRow),
}

/// Where values without a row are explained by what is not settled yet.
#[derive(Clone, Debug, Default)]
pub(crate) struct Open {
    /// Above this value, up to the end: taken in the counter's own epoch, which lasts or is not
    /// settled.
    pub(crate) above: Option<(i64, EntryKind)>,
    /// Above the first and up to the second value: of closed epochs that are being looked through.
    pub(crate) unexamined: Vec<(i64, i64)>,
}

/// A walk along the values of a counter.
#[derive(Debug)]
pub(crate) struct Walk {
    before: i64,
    open: Open,
    entries_max: usize,
    pub(crate) tally: AccountTally,
    pub(crate) stretches: Vec<Run>,
    pub(crate) further_stretches: u64,
    pub(crate) entries: Vec<AccountEntry>,
    pub(crate) further_entries: u64,
}

impl Walk {
    /// Begins behind `origin`.
    pub(crate) fn from(origin: i64, open: Open, entries_max: usize) -> Self {
        Walk {
            before: origin,
            open,
            entries_max,
            tally: AccountTally::default(),
            stretches: Vec::new(),
            further_stretches: 0,
            entries: Vec::new(),
            further_entries: 0,
        }
    }

    /// The next row; none begins before the one before it.
    pub(crate) fn meet(&mut self, met: Met) {
        let Run { first, last, step } = met.run;
        let run = Run { first, last: last.max(first), step: step.max(1) };
        let is_collision = matches!(met.what, What::Entry(EntryKind::Collision, _));
        self.miss(run.first, run.step);
        // Of a row that begins below the end of others, some values are new.
        let fresh = above(run, self.before);
        let count = match fresh {
            // A row that collides with its own values is an oddity, and represents none.
            _ if is_collision => fresh.map_or(0, Run::count),
            _ => run.count(),
        };
        if run.first <= self.before && !is_collision {
            let twice = Run { last: run.last.min(self.before), ..run };
            self.tally.twice += run.count() - fresh.map_or(0, Run::count);
            self.list(EntryKind::Twice, twice, None);
        }
        match met.what {
            What::Issued => self.tally.issued += count,
            What::Imported => self.tally.imported += count,
            What::Registered => self.tally.registered += count,
            What::AsWritten => self.tally.as_written += count,
            What::Archived => {
                self.tally.issued += count;
                self.tally.archived += count;
            }
            What::Entry(kind, row) => {
                *self.place(kind) += count;
                self.list(kind, run, Some(row));
            }
        }
        if let Some(fresh) = fresh {
            self.stretch(fresh);
        }
        self.before = self.before.max(run.last);
    }

    /// Ends at a counter's value; whether rows above it exist.
    pub(crate) fn end(&mut self, upto: i64, step: i64) -> bool {
        let is_exceeded = self.before > upto;
        self.miss(upto.saturating_add(1), step.max(1));
        is_exceeded
    }

    /// The values between the last value met and another.
    fn miss(&mut self, next: i64, step: i64) {
        let distance = i128::from(next) - 1 - i128::from(self.before);
        let count = distance / i128::from(step);
        if count < 1 {
            return;
        }
        let first = self.before.saturating_add(step);
        let hole = Run { first, last: first + i64::try_from(count - 1).unwrap_or(0) * step, step };
        self.stretch(hole);
        let mut rest = Some(hole);
        while let Some(run) = rest {
            let (kind, upto) = self.kind_at(run.first);
            let part = Run { last: run.last.min(upto), ..run };
            let part = Run { last: part.first + (part.last - part.first) / step * step, ..part };
            *self.place(kind) += part.count();
            self.list(kind, part, None);
            rest = above(run, part.last);
        }
    }

    /// The kind of a value without a row, and the last value of that kind.
    fn kind_at(&self, value: i64) -> (EntryKind, i64) {
        if let Some((above, kind)) = self.open.above
            && value > above
        {
            return (kind, i64::MAX);
        }
        let mut upto = self.open.above.map_or(i64::MAX, |(above, _)| above);
        for (after, end) in &self.open.unexamined {
            if value > *after && value <= *end {
                return (EntryKind::Unexamined, (*end).min(upto));
            }
            if value <= *after {
                upto = upto.min(*after);
            }
        }
        (EntryKind::Missing, upto)
    }

    fn place(&mut self, kind: EntryKind) -> &mut u64 {
        let tally = &mut self.tally;
        match kind {
            EntryKind::Gap(reason) => &mut tally.gaps[AccountTally::place(reason)],
            EntryKind::Rejected => &mut tally.rejected,
            EntryKind::Collision => &mut tally.collisions,
            EntryKind::Reserved => &mut tally.reserved,
            EntryKind::Pending => &mut tally.pending,
            EntryKind::Unexamined => &mut tally.unexamined,
            EntryKind::Missing => &mut tally.missing,
            EntryKind::Twice => &mut tally.twice,
        }
    }

    fn list(&mut self, kind: EntryKind, run: Run, row: Option<EntryRow>) {
        if self.entries.len() < self.entries_max {
            self.entries.push(AccountEntry { kind, run, row });
        } else {
            self.further_entries += 1;
        }
    }

    /// Extends a run of values that each occur once.
    fn stretch(&mut self, run: Run) {
        if self.further_stretches == 0 {
            // A single value takes any step that leads to it.
            if let Some(last) = self.stretches.last_mut()
                && last.last.checked_add(last.step) == Some(run.first)
                && (run.first == run.last || run.step == last.step)
            {
                last.last = run.last;
                return;
            }
            if self.stretches.len() < STRETCHES_MAX {
                self.stretches.push(run);
                return;
            }
        }
        self.further_stretches += run.count();
    }
}

/// The values of a run above one.
fn above(run: Run, value: i64) -> Option<Run> {
    if run.first > value {
        return Some(run);
    }
    let skipped = (i128::from(value) - i128::from(run.first)) / i128::from(run.step) + 1;
    let first = i128::from(run.first) + skipped * i128::from(run.step);
    let first = i64::try_from(first).ok().filter(|first| *first <= run.last)?;
    Some(Run { first, ..run })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::GapReason;

    fn issued(first: i64, last: i64, step: i64) -> Met {
        Met { run: Run { first, last, step }, what: What::Issued }
    }

    fn entry(kind: EntryKind, first: i64, last: i64) -> Met {
        let row =
            EntryRow { id: 1, noted_at_us: 0, epoch: 1, allocation_id: None, explained: None };
        Met { run: Run { first, last, step: 1 }, what: What::Entry(kind, row) }
    }

    fn walked(origin: i64, open: Open, rows: Vec<Met>, upto: i64, step: i64) -> Walk {
        let mut walk = Walk::from(origin, open, 10);
        rows.into_iter().for_each(|row| walk.meet(row));
        walk.end(upto, step);
        let counted = walk.stretches.iter().map(|run| run.count()).sum::<u64>();
        assert_eq!(counted + walk.further_stretches, walk.tally.sum(), "{walk:?}");
        walk
    }

    fn told(walk: &Walk) -> Vec<(EntryKind, i64, i64)> {
        walk.entries.iter().map(|entry| (entry.kind, entry.run.first, entry.run.last)).collect()
    }

    #[test]
    fn a_hole_and_an_overlap_do_not_cancel_out() {
        let rows = vec![issued(1, 4, 1), issued(4, 4, 1), issued(6, 6, 1)];
        let walk = walked(0, Open::default(), rows, 6, 1);
        assert_eq!((walk.tally.issued, walk.tally.missing, walk.tally.twice), (6, 1, 1));
        assert_eq!(told(&walk), [(EntryKind::Twice, 4, 4), (EntryKind::Missing, 5, 5)]);
        assert_eq!(walk.stretches, [Run { first: 1, last: 6, step: 1 }]);
    }

    #[test]
    fn a_step_that_changes_makes_another_stretch() {
        let rows = vec![issued(1, 3, 1), issued(8, 8, 5), issued(13, 13, 5), issued(23, 23, 5)];
        let walk = walked(0, Open::default(), rows, 28, 5);
        assert_eq!(told(&walk), [(EntryKind::Missing, 18, 18), (EntryKind::Missing, 28, 28)]);
        let runs = [Run { first: 1, last: 3, step: 1 }, Run { first: 8, last: 28, step: 5 }];
        assert_eq!(walk.stretches, runs);
        assert_eq!(walk.tally.sum(), 8);
    }

    #[test]
    fn what_has_no_row_yet_is_told_apart_from_what_has_none_any_more() {
        let open = Open { above: Some((8, EntryKind::Pending)), unexamined: vec![(3, 6)] };
        let rows = vec![issued(1, 1, 1), issued(10, 10, 1)];
        let walk = walked(0, open, rows, 11, 1);
        assert_eq!(
            told(&walk),
            [
                (EntryKind::Missing, 2, 3),
                (EntryKind::Unexamined, 4, 6),
                (EntryKind::Missing, 7, 8),
                (EntryKind::Pending, 9, 9),
                (EntryKind::Pending, 11, 11),
            ]
        );
        assert_eq!((walk.tally.missing, walk.tally.unexamined, walk.tally.pending), (4, 3, 2));
    }

    #[test]
    fn a_record_that_collides_with_a_row_of_its_value_stands_for_none() {
        let rows = vec![
            entry(EntryKind::Gap(GapReason::Discarded), 1, 2),
            issued(3, 3, 1),
            entry(EntryKind::Collision, 3, 3),
            entry(EntryKind::Collision, 4, 4),
        ];
        let walk = walked(0, Open::default(), rows, 4, 1);
        assert_eq!((walk.tally.collisions, walk.tally.twice, walk.tally.missing), (1, 0, 0));
        assert_eq!(walk.tally.gaps, [2, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(walk.entries.len(), 3);
    }

    #[test]
    fn rows_that_somebody_has_bent_are_counted_and_nothing_panics() {
        let rows = vec![issued(i64::MIN, -5, 0), issued(5, 2, -3), issued(i64::MAX, i64::MAX, 1)];
        let mut walk = Walk::from(0, Open::default(), 1);
        rows.into_iter().for_each(|row| walk.meet(row));
        assert!(walk.end(7, 1), "a row stands above the counter's value");
        assert!(walk.tally.twice > 0 && walk.further_entries > 0, "{walk:?}");
    }
}
