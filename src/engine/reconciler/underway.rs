//! Values on their way to the journal, as outboxes show them: handed out, and not journaled yet.
//!
//! A script writes an outbox entry with the values that it takes, and an entry leaves its outbox
//! once it is journaled (F16). So a value that was taken before an outbox is read is in there, or
//! in whatever is read of the ledger afterwards. Reads only.

use std::collections::{HashMap, HashSet};

use numbering::Range;

use super::backlog::Pages;
use super::{RecoveryError, Stores};
use crate::ledger::Span;
use crate::redis::Redis;

/// Values of some counters that are in the outboxes of their partition.
#[derive(Debug, Default)]
pub(super) struct Underway(HashMap<i64, Vec<Range>>);

impl Underway {
    /// Reads all outboxes of a partition, of dead nodes too: those are taken over, or listed as
    /// outboxes that no process journals.
    ///
    /// # Errors
    /// When Redis or the ledger does not answer.
    pub(super) async fn read(
        stores: &Stores,
        redis: &Redis,
        partition: u32,
        counters: &HashSet<i64>,
    ) -> Result<Self, RecoveryError> {
        let nodes: Vec<_> =
            stores.ledger.nodes().list().await?.into_iter().map(|node| node.node_id).collect();
        let (_, outboxes) = stores.survey(redis, partition, &nodes).await?;
        let mut found: HashMap<i64, Vec<Range>> = HashMap::new();
        for outbox in outboxes {
            let mut pages = Pages::new(stores, redis, partition, outbox);
            while let Some(page) = pages.next().await? {
                let taken = page.iter().flat_map(|entry| &entry.allocations);
                let taken = taken.flat_map(|(taken, _)| taken);
                for taken in taken.filter(|taken| counters.contains(&taken.counter_id)) {
                    found.entry(taken.counter_id).or_default().push(taken.range);
                }
            }
        }
        for ranges in found.values_mut() {
            ranges.sort_unstable_by_key(|range| range.first);
        }
        Ok(Underway(found))
    }

    /// The part of a run of values that is in no outbox. `step` is the distance of its values.
    pub(super) fn left_of(&self, counter_id: i64, run: Span, step: u64) -> Vec<Span> {
        let mut left = Vec::new();
        let mut from = run.first;
        for range in self.0.get(&counter_id).into_iter().flatten() {
            if range.first > run.last || from > run.last {
                break;
            }
            if range.first > from {
                left.push(Span { first: from, last: range.first.saturating_sub(step).max(from) });
            }
            from = from.max(range.last.saturating_add(step));
        }
        if from <= run.last {
            left.push(Span { first: from, last: run.last });
        }
        left
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_outboxes_hold_of_a_run_is_taken_out_of_it() {
        let range = |first, last, step| Range { first, last, step };
        let ranges = vec![range(3, 4, 1), range(4, 4, 1), range(6, 9, 1), range(20, 30, 1)];
        let underway = Underway([(7, ranges), (8, vec![range(10, 30, 10)])].into());
        let left = |counter_id, first, last, step| {
            let left = underway.left_of(counter_id, Span { first, last }, step);
            left.into_iter().map(|span| (span.first, span.last)).collect::<Vec<_>>()
        };
        assert_eq!(left(7, 3, 4, 1), []);
        assert_eq!(left(7, 7, 8, 1), []);
        assert_eq!(left(7, 1, 12, 1), [(1, 2), (5, 5), (10, 12)]);
        assert_eq!(left(7, 10, 19, 1), [(10, 19)]);
        assert_eq!(left(7, 31, 31, 1), [(31, 31)]);
        assert_eq!(left(8, 10, 50, 10), [(40, 50)], "by its step");
        assert_eq!(left(9, 1, 2, 1), [(1, 2)], "another counter");
    }
}
