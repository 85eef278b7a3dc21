//! What one transaction takes, and the planned answers to its orders, before the ledger has taken
//! their rows. Owns no query.

use crate::protocol::entries::Verdict;
use crate::{Counter, Entry, Found, TakeOutcome};

/// A locked counter and what this transaction takes from it.
pub(super) struct Working {
    pub(super) counter: Counter,
    pub(super) value: i64,
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
    /// The answer to the order, once it is known.
    pub(crate) fn outcome(self, entries: &[Entry], verdicts: &[Verdict]) -> TakeOutcome {
        let collided = |place: usize| matches!(verdicts[place], Verdict::Collided { .. });
        let lost = |place: usize| TakeOutcome::Collided { number: entries[place].number.clone() };
        match self {
            Planned::Answered(outcome) => outcome,
            Planned::Entry(place) if collided(place) => lost(place),
            Planned::Entry(place) => TakeOutcome::Taken(entries[place].clone()),
            Planned::Same { by_key, by_document } => {
                match by_key.into_iter().chain(by_document).find(|place| collided(*place)) {
                    Some(place) => lost(place),
                    None => TakeOutcome::Found(Found {
                        by_key: by_key.map(|place| entries[place].clone()),
                        by_document: by_document.map(|place| entries[place].clone()),
                        archived: None,
                    }),
                }
            }
        }
    }
}
