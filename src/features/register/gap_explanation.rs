//! The causes of gaps: which end of which epoch lost their values. Queries the ledger; decides
//! nothing and words nothing.

use std::collections::BTreeMap;

use crate::ledger::{
    AccountTally, At, ChangeRequest, ClosedEpoch, Closing, Event, GapReason, LedgerError, LifeRow,
    Partition, SharedLedger, ValueOf,
};

/// Finds the causes of gaps; queries each epoch once.
pub(crate) struct GapExplanation<'a> {
    ledger: &'a SharedLedger,
    known: BTreeMap<(u32, u64, usize), Ending>,
}

/// The end of an epoch.
#[derive(Clone, Default)]
pub(crate) struct Ending {
    /// The closing, if there was one.
    pub(crate) closed: Option<ClosedEpoch>,
    /// Why it ended.
    pub(crate) cause: Option<String>,
    /// Whether an operator ended it, because the ledger had gone back (F9).
    pub(crate) is_restored: bool,
    /// The change that left the gap, if no end of an epoch did.
    pub(crate) change: Option<ChangeRequest>,
    /// Else the registration of a number by hand that left it.
    pub(crate) by_hand: Option<LifeRow>,
}

impl<'a> GapExplanation<'a> {
    /// One that knows nothing yet.
    pub(crate) fn of(ledger: &'a SharedLedger) -> Self {
        GapExplanation { ledger, known: BTreeMap::new() }
    }

    /// The closing that lost the values: that of the counter's own epoch. If that was exact, the
    /// counter was raised past them: they are attributed to the first closing at the ceiling since,
    /// although a recovery may lie between it and the release that lifted it.
    pub(crate) async fn ending(
        &mut self,
        at: At,
        reason: GapReason,
    ) -> Result<Ending, LedgerError> {
        let wanted = match reason {
            GapReason::Unaccounted => Some(Closing::Ceiling),
            GapReason::BeforeImport
            | GapReason::Skipped
            | GapReason::Returned
            | GapReason::Cancelled
            | GapReason::Expired => return Ok(Ending::default()),
            GapReason::Discarded | GapReason::Collided => None,
        };
        let key = (at.partition, at.epoch, AccountTally::place(reason));
        if let Some(known) = self.known.get(&key) {
            return Ok(known.clone());
        }
        let closed = self.ledger.closed_epoch(at, wanted).await?;
        let mut ending = Ending { closed, ..Ending::default() };
        if let Some(next) = self.next_epoch(&ending).await? {
            let events = self.ledger.events().of(next).await?;
            ending.is_restored = events.iter().any(|event| event.kind == "ledger-restored");
            ending.cause = self.cause(next, events).await?;
        }
        self.known.insert(key, ending.clone());
        Ok(ending)
    }

    /// What skipped a value of a counter: a change of it, or a number by hand.
    pub(crate) async fn skipped(
        &self,
        counter_id: i64,
        first: u64,
        ending: Ending,
    ) -> Result<Ending, LedgerError> {
        let value = i64::try_from(first).unwrap_or(i64::MAX);
        let change = self.ledger.approvals().behind(counter_id, value).await?;
        let by_hand = match change {
            Some(_) => None,
            None => self.ledger.life().passed_over_by(ValueOf { counter_id, value }).await?,
        };
        Ok(Ending { change, by_hand, ..ending })
    }

    /// The epoch after a closed one: the next number, except in a ledger that went back.
    async fn next_epoch(&self, ending: &Ending) -> Result<Option<At>, LedgerError> {
        let Some(closed) = &ending.closed else { return Ok(None) };
        let next = At { epoch: closed.at.epoch + 1, ..closed.at };
        if let Some(closed) = self.ledger.closed_epoch(next, None).await? {
            return Ok(Some(closed.at));
        }
        let rows = self.ledger.partitions().await?;
        let row = rows.into_iter().find(|row| row.partition == next.partition);
        Ok(row.map(|row| At { epoch: row.epoch, ..next }))
    }

    /// Why an epoch began, and so why the one before it ended.
    async fn cause(&self, at: At, events: Vec<Event>) -> Result<Option<String>, LedgerError> {
        for event in events {
            let is_beginning =
                matches!(&*event.kind, "recovery" | "fallback" | "return" | "opening");
            if let Some(cause) = event.detail["cause"].as_str().filter(|_| is_beginning) {
                return Ok(Some(cause.to_owned()));
            }
        }
        // Its leader may have died before it could write the event.
        let rows = self.ledger.partitions().await?;
        let is_asked = |row: &Partition| (row.partition, row.epoch) == (at.partition, at.epoch);
        Ok(rows.into_iter().find(is_asked).map(|row| row.cause))
    }
}

impl Ending {
    /// Nodes that were not accounted for, by the names that operators know.
    pub(crate) fn unheard(&self) -> Vec<String> {
        if self.is_restored {
            return Vec::new();
        }
        let missing = self.closed.iter().flat_map(|closed| &closed.missing);
        missing
            .map(|(node, label)| if label.is_empty() { node.to_string() } else { label.clone() })
            .collect()
    }
}
