//! What this process remembers of a number by hand that it registered, for a ledger that goes back:
//! as much as of one that the database path took (F34, L12). Changes no row.

use numerator_runtime::node::NodeId;

use crate::columns::{signed, unsigned};
use crate::dialect::Conn;
use crate::last_seen::takes::known::{Sighting, finds_sole};
use crate::last_seen::takes::{ConfirmedNumber, CounterTurn};
use crate::query::query_as;
use crate::reservations::memory;
use crate::store::Store;
use crate::{Counter, CounterSpec, Entry, LedgerError, NumberByHand};

/// Where a registration leaves its counter, and what it is once it is committed.
pub(super) struct Memory {
    turn: CounterTurn,
    /// None of a number without a counter.
    seen: Option<Sighting>,
}

impl Memory {
    /// Of what this transaction has written; the counter is as it was before.
    ///
    /// # Errors
    /// `WentBack` where this process knows another number of the value, or a later one of the
    /// document: nothing may be committed.
    pub(super) async fn of(
        store: &Store,
        conn: &mut Conn,
        (node, new): (NodeId, &NumberByHand),
        (spec, counter, base): (&CounterSpec, &Counter, i64),
        entry: &Entry,
    ) -> Result<Self, LedgerError> {
        let (taken, reissued): (i64, i64) =
            query_as("select taken, reissued from counter where counter_id = $1")
                .bind(counter.counter_id)
                .fetch_one(conn)
                .await?;
        let is_above = signed(new.value, "value")? > base;
        let moved = taken.saturating_add(reissued);
        let reissued = unsigned(reissued, "counter.reissued")?;
        let is_of_pool = !is_above && reissued > counter.reissued;
        // A gap that was no returned value moves nothing: its number has no turn of its own.
        let seen = if is_above || is_of_pool {
            let seen = Sighting::taken(entry, moved, is_of_pool);
            seen.map(|seen| seen.sole(finds_sole(&new.order.question)))
        } else {
            Sighting::confirmed(entry)
        };
        if let Some(seen) = &seen {
            memory::new_number_must_miss_nothing(store, node, seen)?;
        }
        let name = (spec.series_id, spec.serial.clone(), spec.key.clone());
        Ok(Memory { turn: CounterTurn { name, taken, reissued }, seen })
    }

    /// Notes it, behind the commit: a ledger that shows less from now on has gone back.
    ///
    /// # Errors
    /// `WentBack` where it contradicts what was noted meanwhile: the number is committed, and not
    /// to be handed out.
    pub(super) fn note(
        self,
        store: &Store,
        node: NodeId,
        entry: &Entry,
    ) -> Result<(), LedgerError> {
        let mut takes = store.last_seen.takes();
        let value = (self.turn.name.clone(), self.turn.taken);
        takes.note(entry.at.partition, [value], Some(ConfirmedNumber::of(entry)));
        takes.note_turn(self.turn);
        drop(takes);
        memory::note(store, Some(node), self.seen.as_slice())
    }
}
