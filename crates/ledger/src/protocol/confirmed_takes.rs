//! Whether the ledger still has what the database path confirmed to this process and no heartbeat
//! shows yet (F34, F47), and how it is reported to a later incarnation (F35).

use std::collections::BTreeSet;

use numerator_runtime::node::NodeId;

use crate::columns::signed;
use crate::connections::Share;
use crate::counters::table::lock_or_create_at_home;
use crate::last_seen::takes::Unreported;
use crate::nodes::marks::must_be_journaled;
use crate::protocol::named_counters;
use crate::query::query;
use crate::register::gaps::{self, Loss};
use crate::store::{Store, commit};
use crate::{Counter, CounterSpec, GapReason, Ledger, LedgerError};

impl Ledger {
    /// Whether takes of the database path wait for [`Ledger::check_takes`].
    pub fn has_unproven_takes(&self) -> bool {
        self.0.store(Share::Common).last_seen.takes().unproven().is_awaited()
    }

    /// Checks that the numbers are there that the database path confirmed before the last confirmed
    /// heartbeat. From then on that heartbeat shows them: a loss of one of them loses it too. Reads
    /// the journal, and waits for locks of it.
    ///
    /// # Errors
    /// `WentBack` where one is missing.
    pub async fn check_takes(&self) -> Result<(), LedgerError> {
        self.write(async |store| {
            let unproven = store.last_seen.takes().unproven();
            let mut tx = store.begin_reading().await?;
            must_be_journaled(&mut *tx, &unproven.numbers).await?;
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

/// Refuses counters that are below what was confirmed: their next values have been issued.
pub(crate) fn must_be_reached(
    store: &Store,
    locked: &[(&CounterSpec, Counter)],
) -> Result<(), LedgerError> {
    let takes = store.last_seen.takes();
    for (spec, counter) in locked {
        let confirmed = takes.value_of(&(spec.series_id, spec.serial.clone(), spec.key.clone()));
        if let Some(confirmed) = confirmed.filter(|confirmed| *confirmed > counter.taken) {
            let why = format!("{} was at {confirmed} and is at {}", spec.name(), counter.taken);
            return Err(LedgerError::WentBack(why));
        }
    }
    Ok(())
}
