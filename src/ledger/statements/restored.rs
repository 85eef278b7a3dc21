//! The ledger that went back: partitions are held, what others remember is written again, and an
//! operator releases them above everything that anybody has seen (F9).
//!
//! Nothing here trusts an id or an epoch of the ledger's own: counters are found by their names,
//! and epochs only rise.

use std::collections::{BTreeMap, HashMap, hash_map};

use sqlx::Row as _;

use super::counters::lock_or_create;
use super::{Conn, Store, allow_long_search, append, commit, partitions};
use crate::ledger::columns::{Word, from_json, signed, small, unsigned, unsigned_small};
use crate::ledger::{
    Appended, At, Closing, Entry, LedgerError, Lift, PartitionState, Released, Seed,
};
use crate::node::NodeId;
use crate::number::SeriesDefinition;

/// See [`crate::ledger::Ledger::hold`].
pub(super) async fn hold(store: &Store, seen: At, cause: &str) -> Result<bool, LedgerError> {
    let mut tx = store.begin().await?;
    let rows = lock_all(&mut tx).await?;
    let is_behind = |row: &Row| row.partition == seen.partition && row.epoch < seen.epoch;
    if !rows.iter().any(is_behind) {
        return Ok(false);
    }
    put_on_hold(&mut tx, &rows, &[seen], cause, store.clock.now_us()).await?;
    commit(tx).await?;
    Ok(true)
}

/// See [`crate::ledger::Ledger::hold_all`].
pub(super) async fn hold_all(store: &Store, seen: &[At], cause: &str) -> Result<u64, LedgerError> {
    let mut tx = store.begin().await?;
    let rows = lock_all(&mut tx).await?;
    let held = put_on_hold(&mut tx, &rows, seen, cause, store.clock.now_us()).await?;
    commit(tx).await?;
    Ok(held)
}

/// A partition's row while it is locked.
struct Row {
    partition: u32,
    epoch: u64,
    state: PartitionState,
    seen_epoch: u64,
}

/// Locks all partitions in their order: who holds one holds all, and two may do so at once.
async fn lock_all(conn: &mut Conn) -> Result<Vec<Row>, LedgerError> {
    let rows = sqlx::query(for_update!(
        "select partition_id, epoch, state, seen_epoch from partition order by partition_id"
    ))
    .fetch_all(conn)
    .await?;
    rows.iter()
        .map(|row| {
            Ok(Row {
                partition: unsigned_small(row.try_get("partition_id")?, "partition_id")?,
                epoch: unsigned(row.try_get("epoch")?, "partition.epoch")?,
                state: PartitionState::read(row.try_get("state")?)?,
                seen_epoch: unsigned(row.try_get("seen_epoch")?, "partition.seen_epoch")?,
            })
        })
        .collect()
}

/// Holds every partition and notes what was seen of each; how many were not held before.
async fn put_on_hold(
    conn: &mut Conn,
    rows: &[Row],
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
        sqlx::query(
            "update partition set seen_epoch = $2, \
             cause = case when state = 'held' then cause else $3 end, \
             changed_at_us = case when state = 'held' then changed_at_us else $4 end, \
             state = 'held', actor = null where partition_id = $1",
        )
        .bind(small(row.partition, "partition")?)
        .bind(signed(seen_epoch, "epoch")?)
        .bind(cause)
        .bind(now_us)
        .execute(&mut *conn)
        .await?;
    }
    Ok(held)
}

/// See [`crate::ledger::Ledger::journal_again`].
pub(super) async fn journal_again(
    store: &Store,
    node: NodeId,
    entries: &[Entry],
) -> Result<Appended, LedgerError> {
    let now_us = store.clock.now_us();
    let mut names = BTreeMap::new();
    for entry in entries {
        for (serial, taken) in entry.taken.iter().enumerate() {
            names.entry(name(entry, serial)?).or_insert((entry.at, taken.range));
        }
    }
    let mut tx = store.begin().await?;
    let mut origins = Origins::default();
    let mut ids = HashMap::new();
    for ((series_id, serial, key), (at, range)) in names {
        let origin = origins.of(&mut tx, series_id, serial).await?;
        let (start, step) = origin.unwrap_or((range.first, range.step));
        let seed = Seed { series_id, serial, key, start, step, max: start, room: 0 };
        let resolved = lock_or_create(&mut tx, at, node, &seed, now_us).await?;
        ids.insert((series_id, serial, seed.key), resolved.counter.counter_id);
    }
    let mut renamed = entries.to_vec();
    for entry in &mut renamed {
        for serial in 0..entry.taken.len() {
            entry.taken[serial].counter_id = ids[&name(entry, serial)?];
        }
    }
    let renamed: Vec<&Entry> = renamed.iter().collect();
    let appended = append::journal(&mut tx, node, &renamed, now_us).await?;
    commit(tx).await?;
    Ok(appended)
}

/// The name of the counter of an entry's serial.
fn name(entry: &Entry, serial: usize) -> Result<(i64, u16, String), LedgerError> {
    let key = entry.record.counter_keys.get(serial).cloned();
    let named = u16::try_from(serial).ok().zip(key);
    let (serial, key) =
        named.ok_or_else(|| LedgerError::Refused(format!("serial {serial} has no counter key")))?;
    Ok((entry.record.series_id, serial, key))
}

/// First value and step of serials, by the newest version of their series.
#[derive(Default)]
struct Origins(HashMap<i64, Vec<(u64, u64)>>);

impl Origins {
    /// `None` where the ledger has forgotten the series.
    async fn of(
        &mut self,
        conn: &mut Conn,
        series_id: i64,
        serial: u16,
    ) -> Result<Option<(u64, u64)>, LedgerError> {
        let origins = match self.0.entry(series_id) {
            hash_map::Entry::Occupied(known) => known.into_mut(),
            hash_map::Entry::Vacant(empty) => empty.insert(read_origins(conn, series_id).await?),
        };
        Ok(origins.get(usize::from(serial)).copied())
    }
}

async fn read_origins(conn: &mut Conn, series_id: i64) -> Result<Vec<(u64, u64)>, LedgerError> {
    let text: Option<String> = sqlx::query_scalar(
        "select definition from series_version where series_id = $1 order by version desc limit 1",
    )
    .bind(series_id)
    .fetch_optional(conn)
    .await?;
    let definition: Option<SeriesDefinition> =
        text.map(|text| from_json(&text, "series_version.definition")).transpose()?;
    let serials = definition.map(|definition| definition.serials).unwrap_or_default();
    Ok(serials.iter().map(|serial| (serial.start, serial.step)).collect())
}

/// See [`crate::ledger::Ledger::lift`].
pub(super) async fn lift(
    store: &Store,
    partition: u32,
    node: NodeId,
    lifts: &[Lift],
) -> Result<u64, LedgerError> {
    let (now_us, at) = (store.clock.now_us(), At { partition, epoch: 0 });
    let mut order: Vec<&Lift> = lifts.iter().collect();
    order.sort_by_key(|lift| (lift.series_id, lift.serial, &lift.key));
    let mut tx = store.begin().await?;
    must_be_held(&partitions::share(&mut tx, partition).await?.state, partition)?;
    let mut origins = Origins::default();
    let mut lifted = 0;
    for Lift { series_id, serial, key, value } in order {
        let (series_id, serial, key) = (*series_id, *serial, key.clone());
        let origin = origins.of(&mut tx, series_id, serial).await?;
        let (start, step) = origin.unwrap_or((1, 1));
        let seed = Seed { series_id, serial, key, start, step, max: start, room: 0 };
        let counter = lock_or_create(&mut tx, at, node, &seed, now_us).await?.counter;
        let done =
            sqlx::query("update counter set ceiling = $2 where counter_id = $1 and ceiling < $2")
                .bind(counter.counter_id)
                .bind(*value)
                .execute(&mut *tx)
                .await?;
        lifted += done.rows_affected();
    }
    commit(tx).await?;
    Ok(lifted)
}

/// See [`crate::ledger::Ledger::release`].
pub(super) async fn release(store: &Store, to: At, margin: u64) -> Result<Released, LedgerError> {
    let ((id, epoch), now_us) = (partitions::columns(to)?, store.clock.now_us());
    let mut tx = store.begin().await?;
    // Every counter is written to: an operator waits for it.
    allow_long_search(&mut tx).await?;
    let rows = lock_all(&mut tx).await?;
    let row = rows.iter().find(|row| row.partition == to.partition);
    let Some(row) = row.filter(|row| row.state == PartitionState::Held) else {
        return Ok(Released::NotHeld);
    };
    // One may have been seen since the caller looked.
    if row.epoch.max(row.seen_epoch) >= to.epoch {
        return Ok(Released::Behind);
    }
    sqlx::query("update counter set ceiling = ceiling + $2 * step where partition_id = $1")
        .bind(id)
        .bind(signed(margin, "margin")?)
        .execute(&mut *tx)
        .await?;
    // The epoch before may be unclosed too, where the ledger went back to a recovery.
    for closed in row.epoch.saturating_sub(1)..=row.epoch {
        sqlx::query(
            "insert into closed_epoch (partition_id, epoch, closing, closed_at_us) \
             values ($1, $2, $3, $4) on conflict do nothing",
        )
        .bind(id)
        .bind(signed(closed, "epoch")?)
        .bind(Closing::Ceiling.word())
        .bind(now_us)
        .execute(&mut *tx)
        .await?;
    }
    sqlx::query(
        "update partition set epoch = $2, state = 'open', owner = 'none', incarnation = null, \
         last_closing = 'ceiling', last_ceiling_epoch = $2 - 1, seen_epoch = 0, actor = null, \
         cause = 'the ledger was restored', changed_at_us = $3 where partition_id = $1",
    )
    .bind(id)
    .bind(epoch)
    .bind(now_us)
    .execute(&mut *tx)
    .await?;
    commit(tx).await?;
    Ok(Released::Released)
}

fn must_be_held(state: &PartitionState, partition: u32) -> Result<(), LedgerError> {
    if *state == PartitionState::Held {
        return Ok(());
    }
    let why = "is not held; nothing is to be released";
    Err(LedgerError::Refused(format!("partition {partition} {why}")))
}
