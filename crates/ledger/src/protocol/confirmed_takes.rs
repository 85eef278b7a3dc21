//! Whether the ledger still has what the database path confirmed to this process and no heartbeat
//! shows yet (F34, F47), and how it is reported to a later incarnation (F35).

use std::collections::{BTreeMap, BTreeSet};

use numerator_runtime::node::NodeId;
use tokio::time::Instant;
use uuid::Uuid;

use crate::columns::signed;
use crate::connections::Share;
use crate::counters::table::lock_or_create_at_home;
use crate::dialect::Conn;
use crate::last_seen::takes::{CounterTurn, NamedCounter, Unreported};
use crate::nodes::marks::must_be_journaled;
use crate::protocol::named_counters;
use crate::query::{QueryBuilder, query, query_as};
use crate::register::gaps::{self, Loss};
use crate::store::{Store, commit};
use crate::{Counter, CounterSpec, GapReason, Ledger, LedgerError};

impl Ledger {
    /// When the newest of the values was shown reserved that this process does not keep any more:
    /// of a ledger that went back by more it does not know how far they were shown (L10).
    pub fn forgot_held(&self) -> Option<Instant> {
        self.0.store(Share::Common).last_seen.takes().forgot_held()
    }

    /// Whether takes of the database path wait for [`Ledger::check_takes`].
    pub fn has_unproven_takes(&self) -> bool {
        self.0.store(Share::Common).last_seen.takes().is_proof_awaited()
    }

    /// Checks that the numbers are there that the database path confirmed before the last confirmed
    /// heartbeat, that reservations are as far as they were seen (L12), and that counters are as
    /// far as they were reserved. From then on that heartbeat shows them: a loss of one of them
    /// loses it too. Reads the journal, and waits for locks of it.
    ///
    /// # Errors
    /// `WentBack` where one is missing.
    pub async fn check_takes(&self) -> Result<(), LedgerError> {
        self.write(async |store| {
            let unproven = store.last_seen.takes().unproven();
            let mut tx = store.begin_reading().await?;
            must_be_journaled(&mut *tx, &unproven.numbers).await?;
            must_be_changed(&mut *tx, &unproven.changed, &unproven.ended).await?;
            must_be_as_far(&mut *tx, &unproven.turns).await?;
            tx.commit().await?;
            store.last_seen.takes().let_go(&unproven);
            Ok(())
        })
        .await
    }

    /// Reports to the incarnation that was agreed on last how far the database path took each
    /// counter in the one before: a counter that is below goes on above it, and the values between
    /// that no row shows are `unaccounted`. Returns the partitions of those counters, also those of
    /// an earlier try that failed: its commit may be there. To be called once the remembered
    /// records were journaled again.
    pub async fn report_takes(&self, node: NodeId) -> Result<BTreeSet<u32>, LedgerError> {
        self.search(async |store| {
            let unreported = store.last_seen.takes().unreported();
            tell(store, node, &unreported).await?;
            Ok(store.last_seen.takes().forget_reported(&unreported))
        })
        .await
    }
}

async fn tell(store: &Store, node: NodeId, unreported: &Unreported) -> Result<(), LedgerError> {
    let (now_us, mut raised) = (store.clock.now_us(), BTreeSet::new());
    if unreported.reached.is_empty() {
        return Ok(());
    }
    let mut known = named_counters::Definitions::default();
    let mut tx = store.begin().await?;
    for ((series_id, serial, key), reached) in &unreported.reached {
        let name = (*series_id, serial.clone(), key.clone());
        let spec = known.spec(&mut *tx, name).await?;
        let found = lock_or_create_at_home(&mut *tx, reached.partition, node, &spec, now_us);
        let counter = found.await?.counter;
        if counter.taken >= reached.value {
            continue;
        }
        let loss = Loss {
            counter_id: counter.counter_id,
            after: counter.taken,
            upto: reached.value,
            step: signed(counter.step, "counter.step")?,
            reason: GapReason::Unaccounted,
            epoch: counter.epoch,
        };
        gaps::register_holes(&mut *tx, loss, now_us).await?;
        query(
            "update counter set taken = $2,
             ceiling = case when ceiling < $2 then $2 else ceiling end where counter_id = $1",
        )
        .bind(counter.counter_id)
        .bind(reached.value)
        .execute(&mut *tx)
        .await?;
        raised.insert(counter.partition);
    }
    store.last_seen.takes().note_raised(raised);
    commit(tx).await
}

/// Refuses a ledger in which reservations wait for their callers that were confirmed or cancelled,
/// or are live that have ended.
async fn must_be_changed(
    conn: &mut Conn,
    changed: &[Uuid],
    ended: &[Uuid],
) -> Result<(), LedgerError> {
    if changed.is_empty() && ended.is_empty() {
        return Ok(());
    }
    let bytes = |ids: &[Uuid]| ids.iter().map(|id| id.as_bytes().to_vec()).collect::<Vec<_>>();
    let mut query = QueryBuilder::new(
        "select count(*) from reservation where (state = 'reserved' and reservation_id",
    );
    query.push_among(bytes(changed)).push(") or reservation_id").push_among(bytes(ended));
    let less: i64 = query.build().scalar().fetch_one(conn).await?;
    if less == 0 {
        return Ok(());
    }
    let why = "reservations show less than what was done to them";
    Err(LedgerError::WentBack(why.into()))
}

/// Refuses a ledger in which counters are not as far as batches left them that reserved a value or
/// took a returned one: both only rise.
async fn must_be_as_far(conn: &mut Conn, turns: &[CounterTurn]) -> Result<(), LedgerError> {
    let mut furthest: BTreeMap<&NamedCounter, (i64, u64)> = BTreeMap::new();
    for CounterTurn { name, taken, reissued } in turns {
        let known = furthest.entry(name).or_insert((*taken, *reissued));
        *known = (known.0.max(*taken), known.1.max(*reissued));
    }
    for ((series_id, serial, key), known) in furthest {
        let counter: Option<(i64, i64)> = query_as(
            "select taken, reissued from counter where series_id = $1 and serial = $2 and key = $3",
        )
        .bind(*series_id)
        .bind(serial)
        .bind(key)
        .fetch_optional(&mut *conn)
        .await?;
        let is_as_far = |(taken, reissued): (i64, i64)| {
            taken >= known.0 && u64::try_from(reissued).is_ok_and(|reissued| reissued >= known.1)
        };
        if !counter.is_some_and(is_as_far) {
            let why = format!("{serial} {key} of series {series_id} was further");
            return Err(LedgerError::WentBack(why));
        }
    }
    Ok(())
}

/// Refuses counters that are below what was confirmed: their next values have been issued.
pub(crate) fn must_be_reached(
    store: &Store,
    locked: &[(&CounterSpec, Counter)],
) -> Result<(), LedgerError> {
    locked.iter().try_for_each(|(_, counter)| must_be_as_confirmed(store, counter))
}

/// Refuses a locked counter that is below what was confirmed.
pub(crate) fn must_be_as_confirmed(store: &Store, counter: &Counter) -> Result<(), LedgerError> {
    let name = (counter.series_id, counter.serial.clone(), counter.key.clone());
    let takes = store.last_seen.takes();
    let reissued = takes.reissued_of(&name);
    if counter.reissued < reissued {
        let why =
            format!("{} gave {reissued} values again, not {}", counter.name(), counter.reissued);
        return Err(LedgerError::WentBack(why));
    }
    let confirmed = takes.value_of(&name);
    if let Some(confirmed) = confirmed.filter(|confirmed| *confirmed > counter.taken) {
        let why = format!("{} was at {confirmed} and is at {}", counter.name(), counter.taken);
        return Err(LedgerError::WentBack(why));
    }
    Ok(())
}
