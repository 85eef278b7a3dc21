//! Whether Redis alone bounds what a ledger that went back has forgotten of a partition (F9).
//!
//! It does if it took every number since: its data set owned each epoch from the restored one on,
//! and a process that was there reports that none followed. Whatever is not known counts against
//! it.

use std::fmt;

use serde::Serialize;

use crate::ledger::Partition;
use crate::redis::Scanned;

/// Why Redis cannot show how far the counters of a partition came.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "why")]
pub enum Unbounded {
    /// It was not asked, or has no owner record of the partition.
    Untold,
    /// A later epoch was seen than its own.
    Passed {
        /// The newest that is known.
        newest: u64,
        /// The last in which Redis took numbers.
        redis: u64,
    },
    /// Its data set has not owned every epoch since the restored one: the database took numbers in
    /// between, or Redis forgot.
    Interrupted {
        /// The first that may have been forgotten.
        restored: u64,
        /// Since which it has owned every one; `None`: an older version opened it, which did not
        /// record it.
        run_since: Option<u64>,
    },
    /// No running service reports that the database has not served after it.
    Unvouched {
        /// The last in which Redis took numbers.
        redis: u64,
    },
}

impl fmt::Display for Unbounded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unbounded::Untold => f.write_str("no redis knows of it"),
            Unbounded::Passed { newest, redis } => {
                write!(f, "epoch {newest} was seen, and redis has taken its last in epoch {redis}")
            }
            Unbounded::Interrupted { restored, run_since: Some(since) } => write!(
                f,
                "the ledger went back to epoch {restored}, and redis has all numbers only since \
                 epoch {since}"
            ),
            Unbounded::Interrupted { restored, run_since: None } => write!(
                f,
                "the ledger went back to epoch {restored}, and redis does not say since which \
                 epoch it has all numbers"
            ),
            Unbounded::Unvouched { redis } => write!(
                f,
                "no running service vouches that the database has not served after epoch {redis} \
                 of redis"
            ),
        }
    }
}

/// Why Redis does not bound a partition whose first forgotten numbers may be of epoch `restored`;
/// `None`: it does, by what it shows.
pub(super) fn unbounded(
    row: &Partition,
    restored: u64,
    shown: Option<&Scanned>,
) -> Option<Unbounded> {
    let Some(shown) = shown else { return Some(Unbounded::Untold) };
    let Some(redis) = shown.taking_epoch else { return Some(Unbounded::Untold) };
    let newest = row.epoch.max(row.seen_epoch);
    if newest > redis {
        return Some(Unbounded::Passed { newest, redis });
    }
    let run_since = shown.run_since;
    if run_since.is_none_or(|since| since > restored) {
        return Some(Unbounded::Interrupted { restored, run_since });
    }
    (row.vouched_epoch != redis).then_some(Unbounded::Unvouched { redis })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ledger::{Owner, PartitionState, Wanted};

    /// A ledger that went back to epoch 3 of Redis, which took all numbers up to 5.
    fn row() -> Partition {
        Partition {
            partition: 1,
            epoch: 3,
            state: PartitionState::Held,
            owner: Owner::None,
            last_closing: None,
            last_ceiling_epoch: 0,
            lifted_epoch: 0,
            actor: None,
            cause: String::new(),
            wanted: Wanted::Auto,
            is_lent: false,
            lender: None,
            tall_epoch: 0,
            seen_epoch: 5,
            vouched_epoch: 5,
            changed_at_us: 0,
        }
    }

    fn shown() -> Scanned {
        Scanned {
            is_master: true,
            deployment: None,
            epoch: Some(5),
            taking_epoch: Some(5),
            run_since: Some(2),
            next: None,
            keys: Vec::new(),
        }
    }

    #[test]
    fn redis_bounds_what_it_took_alone_from_the_restored_epoch_to_one_that_is_vouched_for() {
        assert_eq!(unbounded(&row(), 3, Some(&shown())), None);
        assert_eq!(unbounded(&row(), 2, Some(&shown())), None);
        let sealed = Scanned { epoch: Some(9), ..shown() };
        assert_eq!(unbounded(&row(), 3, Some(&sealed)), None, "a seal takes no numbers");
    }

    #[test]
    fn whatever_is_missing_of_that_needs_a_margin() {
        let interrupted = |run_since| Unbounded::Interrupted { restored: 3, run_since };
        for (row, shown, why) in [
            (row(), None, Unbounded::Untold),
            (row(), Some(Scanned { taking_epoch: None, ..shown() }), Unbounded::Untold),
            (
                Partition { seen_epoch: 6, ..row() },
                Some(Scanned { epoch: Some(7), ..shown() }),
                Unbounded::Passed { newest: 6, redis: 5 },
            ),
            (
                Partition { epoch: 6, ..row() },
                Some(shown()),
                Unbounded::Passed { newest: 6, redis: 5 },
            ),
            (row(), Some(Scanned { run_since: Some(4), ..shown() }), interrupted(Some(4))),
            (row(), Some(Scanned { run_since: None, ..shown() }), interrupted(None)),
            (
                Partition { vouched_epoch: 4, ..row() },
                Some(shown()),
                Unbounded::Unvouched { redis: 5 },
            ),
            (
                Partition { vouched_epoch: 0, seen_epoch: 0, ..row() },
                Some(shown()),
                Unbounded::Unvouched { redis: 5 },
            ),
        ] {
            assert_eq!(unbounded(&row, 3, shown.as_ref()), Some(why));
        }
    }
}
