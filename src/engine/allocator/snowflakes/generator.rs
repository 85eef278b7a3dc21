//! Draws ids within a lease. Never reads a clock itself, never gives an id twice, and never one
//! whose time the lease does not hold, whatever the clock shows (F23).

use numbering::{SNOWFLAKES_PER_MS, Snowflake};

use crate::ledger::SnowflakeLease;

/// The ids of one lease that are still to be drawn.
#[derive(Clone, Debug)]
pub(super) struct Generator {
    lease: SnowflakeLease,
    /// The earliest place of the next id: its millisecond and its serial.
    next_ms: i64,
    next_serial: u16,
}

/// Why there is no id yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NotYet {
    /// The clock shows a time before the next id's: it was set back, the millisecond is used up, or
    /// the number's last holder was ahead.
    Behind {
        /// By so much.
        by_ms: u64,
    },
    /// The clock shows a time that the lease does not reach.
    Spent,
    /// The clock shows a year that ids do not have.
    OutOfYears,
}

impl Generator {
    pub(super) fn new(lease: SnowflakeLease) -> Self {
        Generator { lease, next_ms: lease.from_ms, next_serial: 0 }
    }

    /// The next id.
    pub(super) fn draw(&mut self, now_ms: i64) -> Result<Snowflake, NotYet> {
        let (ms, serial) = match now_ms.cmp(&self.next_ms) {
            std::cmp::Ordering::Less => {
                return Err(NotYet::Behind { by_ms: self.next_ms.abs_diff(now_ms) });
            }
            std::cmp::Ordering::Equal => (now_ms, self.next_serial),
            std::cmp::Ordering::Greater => (now_ms, 0),
        };
        if ms >= self.lease.until_ms {
            return Err(NotYet::Spent);
        }
        let id = Snowflake::at(ms, self.lease.node_number, serial).ok_or(NotYet::OutOfYears)?;
        (self.next_ms, self.next_serial) =
            if serial + 1 < SNOWFLAKES_PER_MS { (ms, serial + 1) } else { (ms + 1, 0) };
        Ok(id)
    }

    /// The lease.
    pub(super) fn lease(&self) -> SnowflakeLease {
        self.lease
    }

    /// Goes on to the end that the ledger has committed; does nothing for another lease.
    pub(super) fn extend(&mut self, extended: SnowflakeLease) {
        let is_same = |lease: &SnowflakeLease| (lease.node_number, lease.holder, lease.from_ms);
        if is_same(&extended) == is_same(&self.lease) {
            self.lease.until_ms = extended.until_ms.max(self.lease.until_ms);
        }
    }

    /// The first millisecond of which no id was drawn.
    pub(super) fn unused_from_ms(&self) -> i64 {
        if self.next_serial == 0 { self.next_ms } else { self.next_ms + 1 }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::node::NodeId;

    const NOW_MS: i64 = 1_764_633_600_000;

    fn lease(length_ms: i64) -> SnowflakeLease {
        let (holder, until_ms) = (NodeId::random(), NOW_MS + length_ms);
        SnowflakeLease { node_number: 7, holder, from_ms: NOW_MS, until_ms }
    }

    #[test]
    fn a_millisecond_has_4096_ids_and_the_next_one_waits_for_the_next() {
        let mut generator = Generator::new(lease(10));
        assert_eq!(generator.unused_from_ms(), NOW_MS);
        for serial in 0..SNOWFLAKES_PER_MS {
            assert_eq!(generator.draw(NOW_MS).unwrap().serial(), serial);
            assert_eq!(generator.unused_from_ms(), NOW_MS + 1);
        }
        assert_eq!(generator.draw(NOW_MS), Err(NotYet::Behind { by_ms: 1 }));
        let next = generator.draw(NOW_MS + 1).unwrap();
        assert_eq!((next.time_ms(), next.serial(), next.node_number()), (NOW_MS + 1, 0, 7));
    }

    #[test]
    fn a_clock_that_goes_back_gets_nothing_until_it_is_where_it_was() {
        let mut generator = Generator::new(lease(10_000));
        let last = generator.draw(NOW_MS + 5_000).unwrap();
        assert_eq!(generator.draw(NOW_MS + 4_000), Err(NotYet::Behind { by_ms: 1_000 }));
        assert_eq!(generator.draw(0), Err(NotYet::Behind { by_ms: (NOW_MS + 5_000) as u64 }));
        let next = generator.draw(NOW_MS + 5_000).unwrap();
        assert_eq!((next.time_ms(), next.serial()), (last.time_ms(), 1));
    }

    #[test]
    fn a_lease_is_kept_at_both_ends() {
        let mut generator = Generator::new(lease(10));
        assert_eq!(generator.draw(NOW_MS - 1), Err(NotYet::Behind { by_ms: 1 }));
        assert!(generator.draw(NOW_MS + 9).is_ok());
        assert_eq!(generator.draw(NOW_MS + 10), Err(NotYet::Spent));
        // Another lease of the same number has no bearing on this one.
        let mine = generator.lease();
        generator.extend(SnowflakeLease { holder: NodeId::random(), ..mine });
        generator.extend(SnowflakeLease { until_ms: NOW_MS, ..mine });
        assert_eq!(generator.draw(NOW_MS + 10), Err(NotYet::Spent));
        generator.extend(SnowflakeLease { until_ms: NOW_MS + 20, ..mine });
        assert!(generator.draw(NOW_MS + 10).is_ok());
    }

    #[test]
    fn a_year_that_ids_do_not_have_is_refused() {
        let lease = SnowflakeLease { from_ms: 0, until_ms: i64::MAX, ..lease(0) };
        let mut generator = Generator::new(lease);
        assert_eq!(generator.draw(0), Err(NotYet::OutOfYears));
        assert_eq!(generator.draw(5_000_000_000_000), Err(NotYet::OutOfYears));
        assert!(generator.draw(NOW_MS).is_ok(), "a refusal uses nothing up");
    }

    proptest! {
        #[test]
        fn ids_rise_strictly_within_the_lease_whatever_the_clock_does(
            clock in prop::collection::vec(-5_i64..30, 1..300),
        ) {
            let mut generator = Generator::new(lease(20));
            let mut last = None;
            for offset in clock {
                let Ok(id) = generator.draw(NOW_MS + offset) else { continue };
                prop_assert!(last < Some(id), "{last:?} {id}");
                prop_assert_eq!(id.time_ms(), NOW_MS + offset);
                prop_assert!((0..20).contains(&offset));
                prop_assert!(id.time_ms() < generator.unused_from_ms());
                last = Some(id);
            }
        }
    }
}
