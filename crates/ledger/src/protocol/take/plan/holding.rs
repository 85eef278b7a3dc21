//! What a transaction of the database path reserves, of what it has planned.

use std::collections::BTreeMap;

use super::Plan;
use crate::dialect::Conn;
use crate::new_row::NewRow;
use crate::protocol::entries::{self, Verdict};
use crate::protocol::keys;
use crate::register::gaps::Loss;
use crate::reservations::block_texts::{self, MetTexts};
use crate::reservations::table::{self, NewReservation};
use crate::{GapReason, LedgerError, Reservation, ReservationState};

/// What is lost with a row that collided: all of it; of a block whose texts others have, the values
/// of these, and all others as not used.
pub(super) fn losses(
    row: &NewRow<'_>,
    met: Option<&BTreeMap<i64, String>>,
    epoch: u64,
) -> Vec<Loss> {
    let (first, last, step) = (row.value_range.first, row.value_range.last, row.step);
    let loss = |first: i64, upto, reason| Loss {
        counter_id: row.value_range.counter_id,
        after: first - step,
        upto,
        step,
        reason,
        epoch,
    };
    let Some(met) = met else { return vec![loss(first, last, GapReason::Collided)] };
    let next = |value: &i64| value.checked_add(step).filter(|value| *value <= last);
    let mut losses: Vec<Loss> = Vec::new();
    for value in std::iter::successors(Some(first), next) {
        let is_met = met.contains_key(&value);
        let reason = if is_met { GapReason::Collided } else { GapReason::Cancelled };
        match losses.last_mut() {
            Some(run) if run.reason == reason => run.upto = value,
            _ => losses.push(loss(value, value, reason)),
        }
    }
    losses
}

impl Plan {
    /// Makes the reservations of the plan, whose texts are locked. A text that the journal has is
    /// not reserved (L14). Returns the texts of blocks that others have, by the places of these.
    pub(super) async fn reserve(
        &self,
        conn: &mut Conn,
        held: &[NewRow<'_>],
        verdicts: &mut [Verdict],
    ) -> Result<BTreeMap<usize, BTreeMap<i64, String>>, LedgerError> {
        let mut met_of = BTreeMap::new();
        for row in held {
            let (place, hold) = (row.entry, self.holds[&row.entry]);
            if verdicts[place] != Verdict::Written {
                continue;
            }
            let entry = &self.entries[place];
            if let Some(MetTexts { texts, other }) = block_texts::met(conn, entry).await? {
                verdicts[place] = Verdict::Collided { other: Some(other) };
                met_of.insert(place, texts);
                continue;
            }
            if let Some(other) = entries::holder(conn, row).await? {
                verdicts[place] = Verdict::Collided { other: Some(other) };
                continue;
            }
            let new = NewReservation {
                entry,
                reserved_at_us: self.reserving.now_us,
                expires_at_us: hold.expires_at_us,
                returns: hold.returns,
                turn: self.turns[place].0,
            };
            if !table::insert(conn, &new, row).await? {
                verdicts[place] = Verdict::Collided { other: None };
                continue;
            }
            // Their texts are locked and were looked for.
            if !block_texts::insert(conn, entry).await? {
                let why = "a number of a block appeared between the look and the insert";
                return Err(LedgerError::Conflict(why.into()));
            }
        }
        Ok(met_of)
    }

    /// The text of an entry that another allocation has.
    pub(super) fn text_met(&self, place: usize) -> String {
        let met = self.met_of.get(&place).and_then(|texts| texts.values().next());
        met.unwrap_or(&self.entries[place].number).clone()
    }

    /// The reservation of an entry that is reserved.
    pub(super) fn reservation(&self, place: usize) -> Option<Reservation> {
        let hold = self.holds.get(&place)?;
        Some(Reservation {
            entry: self.entries[place].clone(),
            state: ReservationState::Reserved,
            expires_at_us: hold.expires_at_us,
            is_over: false,
            turn: self.turns[place].0,
            reserved_at_us: self.reserving.now_us,
            changed_at_us: None,
            changed_by: None,
            reason: None,
        })
    }

    /// Locks the texts of numbers to be reserved, of blocks all of them, before any row is written:
    /// who revises a number holds the lock of its text as it writes one, and would wait for a row
    /// of this transaction.
    pub(super) async fn lock_texts(
        &self,
        conn: &mut Conn,
        held: &[NewRow<'_>],
    ) -> Result<(), LedgerError> {
        let mut texts = Vec::new();
        for row in held {
            let entry = &self.entries[row.entry];
            let scope = &entry.record.scope;
            texts.extend(block_texts::texts_of(entry)?.into_iter().map(|(_, text)| (scope, text)));
        }
        let texts = texts.iter().map(|(scope, text)| (scope.as_str(), text.as_str()));
        conn.lock_names(&keys::text_locks(texts)).await
    }
}
