//! Counters of issued entries, found by their names: a ledger that went back has assigned ids anew
//! (F9). Creates what the ledger has forgotten; writes nothing else.

use std::collections::{BTreeMap, BTreeSet, HashMap, hash_map};

use numbering::{SerialDefinition, SeriesDefinition};
use numerator_runtime::node::NodeId;
use sqlx_macros::FromRow;

use crate::columns::from_json;
use crate::counters::table::{id_of, lock_or_create_at_home};
use crate::dialect::Conn;
use crate::query::{QueryBuilder, query_scalar};
use crate::{AS_WRITTEN_SERIAL, CounterSpec, Entry, LedgerError, Record};

/// What was issued is journaled regardless of later versions of its series.
const ANY_VERSION: u32 = u32::MAX;

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

/// A counter and its name.
#[derive(FromRow)]
struct NameRow {
    counter_id: i64,
    series_id: i64,
    serial: String,
    key: String,
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
        let rows: Vec<NameRow> = query.build().typed().fetch_all(&mut *conn).await?;
        let named = |row: NameRow| (row.counter_id, (row.series_id, row.serial, row.key));
        Ok(Names(rows.into_iter().map(named).collect()))
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
pub(crate) async fn found_by_name(
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
        if serial == AS_WRITTEN_SERIAL {
            // No version declares it.
            return Ok(Some((1, 1)));
        }
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
