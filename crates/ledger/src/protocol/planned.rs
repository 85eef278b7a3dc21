//! What one transaction takes, and the planned answers to its orders, before the ledger has taken
//! their rows. Owns no query.

use crate::protocol::entries::Verdict;
use crate::reservations::pool::ReturnedValues;
use crate::{Counter, Entry, Found, Reservation, TakeOutcome};

/// A locked counter and what this transaction takes from it.
pub(super) struct Working {
    pub(super) counter: Counter,
    pub(super) value: i64,
    /// Its returned values, as many as the orders may take.
    pub(super) pool: ReturnedValues,
    /// How many of them this transaction takes.
    pub(super) reissued: u64,
}

impl Working {
    /// Takes a returned value.
    pub(super) fn reissue(&mut self, value: i64) {
        self.pool.take(value);
        self.reissued += 1;
    }

    /// The turn of what was taken last; see [`Reservation::turn`].
    pub(super) fn turn(&self) -> i64 {
        let reissued = self.counter.reissued.saturating_add(self.reissued);
        self.value.saturating_add(i64::try_from(reissued).unwrap_or(i64::MAX))
    }
}

/// The planned answer to an order, before it is known which rows the ledger takes.
pub(crate) enum Planned {
    /// Decided.
    Answered(TakeOutcome),
    /// The entry at this place of the plan.
    Entry(usize),
    /// An earlier order of this batch has these keys already.
    Same { by_key: Option<usize>, by_document: Option<usize> },
}

impl Planned {
    /// The answer to the order, once it is known. Of a place, `lost` tells the answer where the
    /// entry there collided, and `reserved` the reservation, where it is reserved.
    pub(crate) fn outcome(
        self,
        entries: &[Entry],
        verdicts: &[Verdict],
        (lost, reserved): (impl Fn(usize) -> TakeOutcome, impl Fn(usize) -> Option<Reservation>),
    ) -> TakeOutcome {
        let collided = |place: usize| matches!(verdicts[place], Verdict::Collided { .. });
        match self {
            Planned::Answered(outcome) => outcome,
            Planned::Entry(place) if collided(place) => lost(place),
            Planned::Entry(place) => match reserved(place) {
                Some(reservation) => TakeOutcome::Reserved(Box::new(reservation)),
                None => TakeOutcome::Taken(entries[place].clone()),
            },
            Planned::Same { by_key, by_document } => {
                match by_key.into_iter().chain(by_document).find(|place| collided(*place)) {
                    Some(place) => lost(place),
                    None => {
                        let issued = |place: usize| match reserved(place) {
                            Some(_) => None,
                            None => Some(entries[place].clone()),
                        };
                        TakeOutcome::Found(Found {
                            by_key: by_key.and_then(issued),
                            by_document: by_document.and_then(issued),
                            archived: None,
                            reserved_by_key: by_key.and_then(&reserved).map(Box::new),
                            reserved_by_document: by_document.and_then(&reserved).map(Box::new),
                            assigned: None,
                        })
                    }
                }
            }
        }
    }
}
