//! The ledger that went back: what others remember is written again, and an operator releases the
//! partitions above everything that was seen (F9).
//!
//! Nothing here trusts an id or an epoch of the ledger's own: counters are found by their names,
//! and epochs only rise.

use std::collections::{BTreeMap, BTreeSet, HashMap, hash_map};

use numbering::{SerialDefinition, SeriesDefinition};
use numerator_runtime::node::NodeId;

use crate::calls::SEARCH;
use crate::columns::{from_json, signed};
use crate::connections::Share;
use crate::counters::table::{id_of, lock_or_create_at_home};
use crate::dialect::Conn;
use crate::protocol::append::{self, EntrySource};
use crate::protocol::entries::WriteMode;
use crate::protocol::fitness::must_be_whole;
use crate::protocol::holding::lock_all;
use crate::protocol::{blame, partitions, quorum_check, seed};
use crate::statement::{QueryBuilder, query, query_scalar};
use crate::store::{Store, commit};
use crate::{
    Appended, At, Closing, Counter, CounterSpec, Entry, Ledger, LedgerError, Lift, PartitionState,
    Record, Released,
};

/// What was issued is journaled regardless of later versions of its series.
const ANY_VERSION: u32 = u32::MAX;

impl Ledger {
    /// Journals what a ledger that went back may have forgotten; like `append`, but finds the
    /// counters by their names (an id may be another counter's now) and creates those that are
    /// missing. Fenced by nothing: what was handed out is always journaled.
    pub async fn journal_again(
        &self,
        node: NodeId,
        entries: &[Entry],
    ) -> Result<Appended, LedgerError> {
        self.call(SEARCH.of(Share::Journal), async |store| {
            // A ledger that is being restored table by table has no keys yet.
            must_be_whole(store).await?;
            let appended = journal_again(store, node, entries).await;
            blame::judged(store, node, entries, appended).await
        })
        .await
    }

    /// Lifts ceilings of a held partition to what others know of its counters, creating those that
    /// the ledger has forgotten; how many were below. Never lowers one.
    ///
    /// # Errors
    /// `Refused` where the partition is not held; where a counter lives in another partition by
    /// now, which counts it again.
    pub async fn lift(
        &self,
        partition: u32,
        node: NodeId,
        lifts: &[Lift],
    ) -> Result<u64, LedgerError> {
        self.search(async |store| lift(store, partition, node, lifts).await).await
    }

    /// Ends `held`: everything before `to.epoch` counts as closed at the ceiling, which is raised
    /// by `margin` numbers for each counter; the partition is open, and has no owner yet.
    pub async fn release(&self, to: At, margin: u64) -> Result<Released, LedgerError> {
        self.search(async |store| {
            let ((id, epoch), now_us) = (partitions::columns(to)?, store.clock.now_us());
            let mut tx = store.begin().await?;
            // Every counter is written to: an operator waits for it.
            tx.allow_long_search().await?;
            let rows = lock_all(&mut *tx).await?;
            let row = rows.iter().find(|row| row.partition == to.partition);
            let Some(row) = row.filter(|row| row.state == PartitionState::Held) else {
                return Ok(Released::NotHeld);
            };
            // One may have been seen since the caller looked.
            if row.epoch.max(row.seen_epoch) >= to.epoch {
                return Ok(Released::Behind);
            }
            // From here on an operator decides.
            quorum_check::end(&mut *tx).await?;
            query("update counter set ceiling = ceiling + $2 * step where partition_id = $1")
                .bind(id)
                .bind(signed(margin, "margin")?)
                .execute(&mut *tx)
                .await?;
            // The epoch before may be unclosed too, where the ledger went back to a recovery.
            let unclosed = row.epoch.saturating_sub(1)..=row.epoch;
            partitions::close_held(&mut *tx, to.partition, unclosed, Closing::Ceiling, now_us)
                .await?;
            query(
                "update partition set epoch = $2, state = 'open', owner = 'none', incarnation =
                 null,
                 last_closing = 'ceiling', last_ceiling_epoch = $2 - 1, lifted_epoch = $2 - 1,
                 seen_epoch = 0,
                 vouched_epoch = 0, actor = null, cause = 'the ledger was restored',
                 changed_at_us = $3 where partition_id = $1",
            )
            .bind(id)
            .bind(epoch)
            .bind(now_us)
            .execute(&mut *tx)
            .await?;
            commit(tx).await?;
            Ok(Released::Released)
        })
        .await
    }
}

async fn journal_again(
    store: &Store,
    node: NodeId,
    entries: &[Entry],
) -> Result<Appended, LedgerError> {
    let now_us = store.clock.now_us();
    let mut tx = store.begin_unfenced().await?;
    let (found, homes) = found_by_name(&mut *tx, node, entries.to_vec(), now_us).await?;
    let found: Vec<&Entry> = found.iter().collect();
    let writing = store.writing(node, now_us);
    let write_mode = (EntrySource::Teller, WriteMode::Judged);
    let appended = append::journal(&mut *tx, &writing, &found, write_mode).await?;
    commit(tx).await?;
    Ok(Appended { homes, ..appended })
}

/// Entries with the ids of their counters as this ledger has them. A ledger that went back has
/// assigned ids anew, and earlier entries have the former ones.
pub(crate) async fn with_present_ids(
    conn: &mut Conn,
    node: NodeId,
    entries: Vec<Entry>,
    now_us: i64,
) -> Result<Vec<Entry>, LedgerError> {
    let names = Names::of(conn, &entries).await?;
    let is_own = |entry: &Entry| (0..entry.taken.len()).all(|place| names.are_own(entry, place));
    if entries.iter().all(is_own) {
        return Ok(entries);
    }
    Ok(found_by_name(conn, node, entries, now_us).await?.0)
}

/// The counter of each serial of an entry that cannot be journaled; `None` where the ledger has
/// none of its name, whichever counter has its id by now.
pub(crate) async fn present_counters(
    conn: &mut Conn,
    entry: &Entry,
) -> Result<Vec<Option<i64>>, LedgerError> {
    let names = Names::of(conn, std::slice::from_ref(entry)).await?;
    let mut ids = Vec::with_capacity(entry.taken.len());
    for (place, taken) in entry.taken.iter().enumerate() {
        let is_known = names.0.contains_key(&taken.counter_id);
        ids.push(match name(entry, place) {
            _ if is_known && names.are_own(entry, place) => Some(taken.counter_id),
            // No engine holds such a name, and not every one accepts the query.
            Ok((_, serial, key)) if serial.contains('\0') || key.contains('\0') => None,
            Ok((series_id, serial, key)) => id_of(conn, series_id, &serial, &key).await?,
            Err(_) => None,
        });
    }
    Ok(ids)
}

/// The names that the ledger has to the ids of entries' counters.
struct Names(HashMap<i64, (i64, String, String)>);

impl Names {
    async fn of(conn: &mut Conn, entries: &[Entry]) -> Result<Self, LedgerError> {
        let all = entries.iter().flat_map(|entry| &entry.taken).map(|taken| taken.counter_id);
        let ids: BTreeSet<i64> = all.collect();
        let mut query = QueryBuilder::new(
            "select counter_id, series_id, serial, key from counter where counter_id",
        );
        query.push_among(ids.into_iter().collect());
        let rows = query.build().fetch_all(&mut *conn).await?;
        let mut names = HashMap::with_capacity(rows.len());
        for row in rows {
            let name = (row.try_get("series_id")?, row.try_get("serial")?, row.try_get("key")?);
            names.insert(row.try_get("counter_id")?, name);
        }
        Ok(Names(names))
    }

    /// Whether a serial's id is that of the counter of its name. The row that keeps the text of a
    /// revision has no counter, and no name that says otherwise.
    fn are_own(&self, entry: &Entry, place: usize) -> bool {
        let Ok(own) = name(entry, place) else { return true };
        self.0.get(&entry.taken[place].counter_id).is_some_and(|name| *name == own)
    }
}

/// Entries with the ids of the counters that have their names; one that the ledger has forgotten
/// is begun anew. Also in which partitions these counters live.
async fn found_by_name(
    conn: &mut Conn,
    node: NodeId,
    mut entries: Vec<Entry>,
    now_us: i64,
) -> Result<(Vec<Entry>, BTreeSet<u32>), LedgerError> {
    let (mut known, mut homes) = (Definitions::default(), BTreeSet::new());
    // By name: every caller locks counters in the same order.
    let mut specs = BTreeMap::new();
    for (index, entry) in entries.iter().enumerate() {
        for (place, taken) in entry.taken.iter().enumerate() {
            let (series_id, serial, key) = name(entry, place)?;
            let origin = known.origin(conn, series_id, &serial).await?;
            let (start, step) = origin.unwrap_or((taken.range.first, taken.range.step));
            let version = ANY_VERSION;
            let spec = CounterSpec {
                series_id,
                version,
                serial,
                key,
                start,
                step,
                max: start,
                headroom: 0,
            };
            let name = (series_id, spec.serial.clone(), spec.key.clone());
            let (_, _, places) = specs.entry(name).or_insert((entry.at, spec, Vec::new()));
            places.push((index, place));
        }
    }
    for (at, spec, places) in specs.into_values() {
        let found = lock_or_create_at_home(conn, at.partition, node, &spec, now_us).await?;
        let counter = found.counter;
        homes.insert(counter.partition);
        for (index, place) in places {
            entries[index].taken[place].counter_id = counter.counter_id;
        }
    }
    Ok((entries, homes))
}

/// The name of the counter of an entry's serial: its series, its serial, its key.
pub(crate) fn name(entry: &Entry, place: usize) -> Result<(i64, String, String), LedgerError> {
    let Record { series_id, serials, counter_keys, .. } = &*entry.record;
    match (serials.get(place), counter_keys.get(place)) {
        (Some(serial), Some(key)) => Ok((*series_id, serial.clone(), key.clone())),
        _ => Err(LedgerError::Refused(format!("serial {place} has no name or no counter key"))),
    }
}

/// The serials of series by their newest versions.
#[derive(Default)]
pub(crate) struct Definitions(HashMap<i64, Vec<SerialDefinition>>);

impl Definitions {
    /// A counter as numbers that are out name it, to be found or begun at its home.
    pub(crate) async fn spec(
        &mut self,
        conn: &mut Conn,
        (series_id, serial, key): (i64, String, String),
    ) -> Result<CounterSpec, LedgerError> {
        let (start, step) = self.origin(conn, series_id, &serial).await?.unwrap_or((1, 1));
        let version = ANY_VERSION;
        Ok(CounterSpec { series_id, version, serial, key, start, step, max: start, headroom: 0 })
    }

    /// First value and step of a serial; none where the ledger has forgotten it.
    async fn origin(
        &mut self,
        conn: &mut Conn,
        series_id: i64,
        serial: &str,
    ) -> Result<Option<(u64, u64)>, LedgerError> {
        let serials = match self.0.entry(series_id) {
            hash_map::Entry::Occupied(known) => known.into_mut(),
            hash_map::Entry::Vacant(empty) => empty.insert(read_serials(conn, series_id).await?),
        };
        let declared = serials.iter().find(|declared| declared.name == serial);
        Ok(declared.map(|declared| (declared.start, declared.step)))
    }
}

async fn read_serials(
    conn: &mut Conn,
    series_id: i64,
) -> Result<Vec<SerialDefinition>, LedgerError> {
    let text: Option<String> = query_scalar(
        "select definition from series_version where series_id = $1 order by version desc limit 1",
    )
    .bind(series_id)
    .fetch_optional(conn)
    .await?;
    let definition: Option<SeriesDefinition> =
        text.map(|text| from_json(&text, "series_version.definition")).transpose()?;
    Ok(definition.map(|definition| definition.taken_serials().into_owned()).unwrap_or_default())
}

/// See [`crate::Ledger::lift`].
pub(crate) async fn lift(
    store: &Store,
    partition: u32,
    node: NodeId,
    lifts: &[Lift],
) -> Result<u64, LedgerError> {
    let now_us = store.clock.now_us();
    let mut tx = store.begin().await?;
    must_be_held(&partitions::share(&mut *tx, partition).await?.state, partition)?;
    let mut known = Definitions::default();
    let mut order = Vec::with_capacity(lifts.len());
    for Lift { series_id, serial, key, value } in lifts.iter().cloned() {
        order.push((known.spec(&mut *tx, (series_id, serial, key)).await?, value));
    }
    order.sort_by(|(a, _), (b, _)| seed::name(a).cmp(&seed::name(b)));
    let mut lifted = 0;
    for (spec, value) in order {
        let found = lock_or_create_at_home(&mut *tx, partition, node, &spec, now_us).await?;
        let counter = found.counter;
        must_go_on_above(&mut *tx, partition, &counter, value).await?;
        let done = query("update counter set ceiling = $2 where counter_id = $1 and ceiling < $2")
            .bind(counter.counter_id)
            .bind(value)
            .execute(&mut *tx)
            .await?;
        lifted += done.rows_affected();
    }
    commit(tx).await?;
    Ok(lifted)
}

/// Refuses a locked counter that lives in another partition and is counted there again: a ceiling
/// would not keep it from issued numbers. While that partition is held, or the counter has not been
/// touched since, its next touch goes on above its ceiling.
async fn must_go_on_above(
    conn: &mut Conn,
    partition: u32,
    counter: &Counter,
    value: i64,
) -> Result<(), LedgerError> {
    if counter.partition == partition || counter.taken >= value {
        return Ok(());
    }
    let home = partitions::read(conn, counter.partition).await?;
    let is_held = home.state == PartitionState::Held;
    if is_held || partitions::goes_on_above_ceiling(conn, counter, &home).await? {
        return Ok(());
    }
    let Counter { key, partition: home, .. } = counter;
    let why = "which counts it again: hold all partitions first, with \
               `numerator reconcile --ledger-restored --hold --apply`";
    Err(LedgerError::Refused(format!("counter {key} lives in partition {home} by now, {why}")))
}

fn must_be_held(state: &PartitionState, partition: u32) -> Result<(), LedgerError> {
    if *state == PartitionState::Held {
        return Ok(());
    }
    let why = "is not held; nothing is to be released";
    Err(LedgerError::Refused(format!("partition {partition} {why}")))
}
