//! Holding a ledger that went back: all partitions at once, and a new incarnation with it, so that
//! every process is stopped by its next transaction (F9, F25). A later incarnation of another
//! branch is held like an earlier one (F36). Also the entry point of what is done with it then.

use numerator_runtime::node::NodeId;
use tokio::time::Instant;

use crate::calls::CALL;
use crate::columns::{signed, small};
use crate::connections::Share;
use crate::dialect::Conn;
use crate::incarnation::{Incarnation, Shown};
use crate::protocol::fitness::must_be_whole;
use crate::protocol::lineage::{self, Descent};
use crate::protocol::partitions::{LockedRow, lock_all};
use crate::protocol::{incarnation, quorum_check, stamps};
use crate::query::query;
use crate::store::{Store, commit};
use crate::{At, Confirmed, Ledger, LedgerError, PartitionState, Stamps, snowflakes};

impl Ledger {
    /// Puts all partitions on `held` because one shows an epoch below the one that was `seen`: the
    /// ledger went back (F9). Compare-and-set, true only while it does. An operator ends it.
    pub async fn hold(&self, seen: At, cause: &str) -> Result<bool, LedgerError> {
        self.write(async |store| {
            must_be_whole(store).await?;
            let mut tx = store.begin_unfenced().await?;
            let shown = incarnation::locked(store, &mut tx).await?;
            let rows = lock_all(&mut *tx).await?;
            if !rows.iter().any(|row| row.is_behind(&[seen])) {
                return Ok(false);
            }
            put_on_hold(&mut *tx, &rows, &[seen], cause, store.clock.now_us()).await?;
            quorum_check::end(&mut *tx).await?;
            let next = incarnation::renew(store, &mut tx, shown, None).await?;
            commit(tx).await?;
            store.last_seen.agree(next);
            Ok(true)
        })
        .await
    }

    /// Puts all partitions on `held` because the caller knows that the ledger went back, and notes
    /// the highest epochs that it has seen; how many were not held before. Safe to repeat.
    pub async fn hold_all(&self, seen: &[At], cause: &str) -> Result<u64, LedgerError> {
        self.call(CALL.of(Share::Watch), async |store| {
            hold_all(store, seen, cause, (Asking::Nobody, None)).await
        })
        .await
    }

    /// The same because the ledger lacks what it once confirmed to a node of any process. From then
    /// on that confirmation is older than this hold, wherever else it is recorded (F36).
    pub async fn hold_all_after(
        &self,
        confirmed: &Confirmed,
        seen: &[At],
        cause: &str,
    ) -> Result<u64, LedgerError> {
        let Confirmed { incarnation: number, nonce, .. } = *confirmed;
        let known = Some(Incarnation { number, nonce });
        self.call(CALL.of(Share::Watch), async |store| {
            hold_all(store, seen, cause, (Asking::Nobody, known)).await
        })
        .await
    }

    /// Holds all partitions like [`crate::Ledger::hold_all`], because this process itself was
    /// confirmed what the ledger has forgotten, and asks all its users what was confirmed to them:
    /// once they all have reported, the ledger goes on automatically (F25). Begins no inquest where
    /// another process has drawn the incarnation, where an operator holds it, or at an older server
    /// that lives on.
    pub async fn inquire(&self, seen: &[At], cause: &str) -> Result<u64, LedgerError> {
        self.call(CALL.of(Share::Watch), async |store| {
            hold_all(store, seen, cause, (Asking::All, None)).await
        })
        .await
    }

    /// Whether a copy that lacks commits may take its place automatically: a standby that is
    /// promoted. Where not, an operator ends each hold.
    pub fn fails_over(&self) -> bool {
        self.0.store(Share::Common).pool().fails_over()
    }

    /// When something was last committed through this handle that no process reports again: a
    /// series, an import, a change by an operator.
    pub fn changed_at(&self) -> Option<Instant> {
        self.0.store(Share::Common).last_seen.changed_at()
    }

    /// Whether the ledger has all series, reference data and tokens that it ever showed to this
    /// handle.
    pub async fn has_catalog(&self) -> Result<bool, LedgerError> {
        self.call(CALL, async |store| {
            let shown = store.last_seen.shown();
            let Stamps { series, reference, tokens, .. } = stamps::stamps(store).await?;
            Ok([series, reference, tokens].into_iter().zip(shown).all(|(now, shown)| now >= shown))
        })
        .await
    }

    /// What was confirmed to a node that registered through this handle.
    pub fn confirmed(&self, node: NodeId) -> Option<Confirmed> {
        self.0.store(Share::Common).last_seen.confirmed(node)
    }
}

/// The processes that are asked what was confirmed to them, once all is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asking {
    /// None: an operator ends the hold.
    Nobody,
    /// Every process.
    All,
}

/// Why an operator must end a hold, whatever the processes remember.
const BRANCH: &str = "it is another branch: a copy of it was released elsewhere while numbers were \
                      confirmed here";

/// Why a ledger is held that is opened in another incarnation than the one agreed on.
const PUT_BACK: &str = "the ledger went back while nobody looked: it lives another life than the \
                        one that was agreed on";

/// Takes over what was agreed on. A ledger in another incarnation by now was restored, or failed
/// over, while no process of this handle watched: it is held immediately, before the first number.
pub(crate) async fn agree(store: &Store) -> Result<(), LedgerError> {
    let mut tx = store.reader.begin().await?;
    let shown = store.pool().shown(&mut *tx).await?;
    tx.commit().await?;
    if let Some(Shown { incarnation, is_present: true, .. }) = shown {
        store.last_seen.agree(incarnation);
        return Ok(());
    }
    let mut tx = store.begin_unfenced().await?;
    tx.lock_incarnation().await?;
    // Another process may have been first.
    match store.pool().shown(&mut *tx).await? {
        Some(Shown { incarnation, is_present: true, .. }) => store.last_seen.agree(incarnation),
        None => {
            let first = Incarnation::first();
            tx.agree(first).await?;
            lineage::begin(&mut *tx, first, store.clock.now_us()).await?;
            commit(tx).await?;
            store.last_seen.agree(first);
        }
        Some(_) => {
            drop(tx);
            // Other processes may run that have not noticed yet.
            let asking = if store.pool().fails_over() { Asking::All } else { Asking::Nobody };
            hold_all(store, &[], PUT_BACK, (asking, None)).await?;
        }
    }
    Ok(())
}

/// See [`crate::Ledger::hold_all`].
pub(crate) async fn hold_all(
    store: &Store,
    seen: &[At],
    cause: &str,
    (asking, known): (Asking, Option<Incarnation>),
) -> Result<u64, LedgerError> {
    // A ledger that is being restored shows partitions last.
    must_be_whole(store).await?;
    let mut tx = store.begin_unfenced().await?;
    let shown = incarnation::locked(store, &mut tx).await?;
    let mut rows = lock_all(&mut *tx).await?;
    let now_us = store.clock.now_us();
    let is_open = |row: &&LockedRow| row.state != PartitionState::Held;
    let knows_less = rows.iter().filter(is_open).any(|row| row.is_behind(seen));
    let mine = store.last_seen.agreed();
    let found = shown.map(|shown| shown.incarnation);
    let descent = match mine.filter(|mine| found.is_some_and(|found| found != *mine)) {
        Some(mine) => Some(lineage::descent(store, &mut *tx, mine).await?),
        None => None,
    };
    // While everything is held no process goes on without the report of this one.
    let is_own = match descent {
        Some(Descent::Own) => true,
        Some(Descent::Branch) => !rows.iter().any(|row| is_open(&row)),
        Some(Descent::Strange) | None => false,
    };
    // Another process has held it since this one looked, and it may be released by now: a late
    // process adds what it has seen, and reports what it remembers before anything else (F35).
    let later = shown.filter(|shown| shown.is_present && is_own).map(|shown| shown.incarnation);
    if let Some(later) = later.filter(|_| !knows_less) {
        rows.retain(|row| row.state == PartitionState::Held);
        put_on_hold(&mut *tx, &rows, seen, cause, now_us).await?;
        commit(tx).await?;
        store.last_seen.agree(later);
        return Ok(0);
    }
    // A hold without an inquest is an operator's to end, whichever process finds it. So is an older
    // server that lives on next to a newer one: others may have gone on there without it.
    let is_held = rows.iter().any(|row| row.state == PartitionState::Held);
    let is_strange = shown.is_some_and(|shown| shown.is_present && Some(shown.incarnation) != mine);
    // A release elsewhere did not know what was confirmed here since.
    let is_not_earlier = mine.zip(found).is_some_and(|(mine, found)| found.number >= mine.number);
    let is_branch = is_not_earlier && descent.is_some_and(|descent| descent != Descent::Own);
    let is_operators =
        (is_held || is_strange || is_branch) && !quorum_check::is_under_way(&mut *tx).await?;
    let cause = if is_branch { format!("{cause}; {BRANCH}") } else { cause.to_owned() };
    let held = put_on_hold(&mut *tx, &rows, seen, &cause, now_us).await?;
    // Every other process must stop, and report what it remembers, before it writes here again.
    let next = incarnation::renew(store, &mut tx, shown, known).await?;
    if asking == Asking::All && !is_operators {
        quorum_check::begin(&mut tx, next, now_us).await?;
    } else {
        quorum_check::end(&mut *tx).await?;
    }
    commit(tx).await?;
    store.last_seen.agree(next);
    Ok(held)
}

/// Holds every partition and notes what was seen of each; how many were not held before.
async fn put_on_hold(
    conn: &mut Conn,
    rows: &[LockedRow],
    seen: &[At],
    cause: &str,
    now_us: i64,
) -> Result<u64, LedgerError> {
    let mut held = 0;
    for row in rows {
        let seen = seen.iter().filter(|at| at.partition == row.partition);
        let seen_epoch = seen.map(|at| at.epoch).fold(row.seen_epoch, u64::max);
        let is_new = row.state != PartitionState::Held;
        if !is_new && seen_epoch == row.seen_epoch {
            continue;
        }
        held += u64::from(is_new);
        // The first cause stays: those who come later only add what they have seen.
        query(
            "update partition set seen_epoch = $2,
             cause = case when state = 'held' then cause else $3 end,
             changed_at_us = case when state = 'held' then changed_at_us else $4 end,
             vouched_epoch = case when state = 'held' then vouched_epoch else 0 end,
             state = 'held', actor = null where partition_id = $1",
        )
        .bind(small(row.partition, "partition")?)
        .bind(signed(seen_epoch, "epoch")?)
        .bind(cause)
        .bind(now_us)
        .execute(&mut *conn)
        .await?;
    }
    if held > 0 {
        snowflakes::forget_none(conn, now_us).await?;
    }
    Ok(held)
}
