//! Whether a record is to blame where the database refuses it for what it holds (F45).
//!
//! A broken constraint, a missing partition of a table or a trigger that fails refuses every row in
//! the words in which it would refuse a bad one. So a record is to blame only where a plain one of
//! the same time, epoch and form is taken through the same statements, before it and after it, in
//! one transaction: during it no table that it has written to is changed. All of it is taken back.

use jiff::tz::TimeZone;
use numbering::{Range, TakenRange};
use numerator_runtime::node::{NodeId, system_random};
use uuid::Uuid;

use crate::counters::table;
use crate::dialect::Conn;
use crate::protocol::entries::WriteMode;
use crate::protocol::journaling::{self, EntrySource};
use crate::protocol::named_counters;
use crate::query::query;
use crate::seal::Writing;
use crate::store::Store;
use crate::{Appended, CounterSpec, Entry, LedgerError, Record};

/// The outcome of writing entries; where one was written alone and refused, whether it is to blame.
pub(crate) async fn judged(
    store: &Store,
    node: NodeId,
    entries: &[Entry],
    written: Result<Appended, LedgerError>,
) -> Result<Appended, LedgerError> {
    match (written, entries) {
        (Err(LedgerError::Unfit(reason)), [suspect]) => {
            Err(match prove(store, node, suspect).await {
                Ok(()) => LedgerError::Refused(reason),
                Err(LedgerError::Unfit(_)) => LedgerError::Unfit(reason).unproven(),
                Err(other) => other,
            })
        }
        (written, _) => written,
    }
}

/// Shows that the database refuses a record and takes others.
///
/// # Errors
/// Where it takes neither, or both.
async fn prove(store: &Store, node: NodeId, suspect: &Entry) -> Result<(), LedgerError> {
    let writing = store.writing(node, store.clock.now_us());
    let mut tx = store.begin_unfenced().await?;
    take_plain(&mut *tx, &writing, suspect).await?;
    query("savepoint suspect").execute(&mut *tx).await?;
    let taken = take(&mut *tx, &writing, suspect).await;
    query("rollback to savepoint suspect").execute(&mut *tx).await?;
    match taken {
        Err(LedgerError::Unfit(_)) => {}
        Err(other) => return Err(other),
        Ok(_) => return Err(LedgerError::Conflict("the ledger takes the record by now".into())),
    }
    take_plain(&mut *tx, &writing, suspect).await?;
    tx.rollback().await?;
    Ok(())
}

/// Writes a plain record, which must be taken.
async fn take_plain(
    conn: &mut Conn,
    writing: &Writing,
    suspect: &Entry,
) -> Result<(), LedgerError> {
    let (mut plain, spec) = plain(suspect, system_random());
    let Writing { node, now_us, .. } = *writing;
    let partition = suspect.at.partition;
    let made = table::lock_or_create_at_home(conn, partition, node, &spec, now_us).await?;
    plain.taken.iter_mut().for_each(|taken| taken.counter_id = made.counter.counter_id);
    let appended = take(conn, writing, &plain).await?;
    if appended.written == plain.taken.len() as u64 {
        return Ok(());
    }
    Err(LedgerError::Fault("a plain row is not written, and nothing stands in its way".into()))
}

async fn take(conn: &mut Conn, writing: &Writing, entry: &Entry) -> Result<Appended, LedgerError> {
    let Writing { node, now_us, .. } = *writing;
    let present = named_counters::with_present_ids(conn, node, vec![entry.clone()], now_us).await?;
    let present: Vec<&Entry> = present.iter().collect();
    journaling::journal(conn, writing, &present, (EntrySource::Teller, WriteMode::Judged)).await
}

/// A record that is like another one in all but its texts, of a counter of its own; and that
/// counter. What it has in common with others is new too, so that this is written as well.
fn plain(like: &Entry, id: Uuid) -> (Entry, CounterSpec) {
    let text = format!("plain-{id}");
    let Record { series_id, version, issued_at_us, .. } = *like.record;
    let serials = like.taken.len().max(1);
    let range = |value: u64| Range { first: value, last: value, step: 1 };
    let taken = |value: u64| TakenRange { counter_id: 0, range: range(value) };
    let day = jiff::Timestamp::from_microsecond(issued_at_us).unwrap_or_default();
    let record = Record {
        allocation_id: id,
        series_id,
        version,
        type_code: text.clone(),
        scope: text.clone(),
        mask: text.clone(),
        document_id: Some(text.clone()),
        document_date: day.to_zoned(TimeZone::UTC).date().to_string(),
        serials: vec!["SEQ".into(); serials],
        counter_keys: vec![text.clone(); serials],
        user_id: text.clone(),
        idempotency_key: Some(text.clone()),
        payload_digest: "00".into(),
        issued_at_us,
        ..Record::default()
    };
    let entry = Entry {
        record: std::sync::Arc::new(record),
        taken: (1..=serials as u64).map(taken).collect(),
        number: text.clone(),
        ..like.clone()
    };
    let spec = CounterSpec {
        series_id,
        version: u32::MAX,
        serial: "SEQ".into(),
        key: text,
        start: 1,
        step: 1,
        max: 1,
        headroom: 0,
    };
    (entry, spec)
}
