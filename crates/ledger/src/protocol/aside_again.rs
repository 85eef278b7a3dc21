//! Records that are put aside, on their way into the journal after all.

use numerator_runtime::node::NodeId;
use sqlx_macros::FromRow;
use uuid::Uuid;

use crate::calls::SEARCH;
use crate::columns::{read_raw, read_uuid, signed};
use crate::connections::Share;
use crate::counters::table::lock_all;
use crate::dialect::Conn;
use crate::protocol::entries::WriteMode;
use crate::protocol::journaling::{self, EntrySource};
use crate::protocol::named_counters;
use crate::query::{QueryBuilder, query, query_as};
use crate::register::gaps;
use crate::store::{Store, commit_alone};
use crate::{Entry, Event, JournaledAgain, Ledger, LedgerError, PutAside, events};

impl Ledger {
    /// Records that are put aside, after a place, oldest first, each allocation once.
    pub async fn put_aside(&self, after: i64, limit: u32) -> Result<Vec<PutAside>, LedgerError> {
        self.search(async |store| {
            let mut query = QueryBuilder::new(
                "select journal_rejected_id, allocation_id, raw, reason, rejected_at_us,
                 acknowledged_by from journal_rejected r where not exists (select 1 from
                 journal_rejected e where e.allocation_id = r.allocation_id
                 and e.journal_rejected_id < r.journal_rejected_id) and journal_rejected_id > ",
            );
            query.push_bind(after).push(" order by journal_rejected_id limit ");
            query.push_bind(gaps::bounded(limit));
            query.build().typed::<AsideRow>().fetch_all_into(&store.reader).await
        })
        .await
    }

    /// Takes a record that is put aside into the journal: its counters are found by their names. An
    /// event notes who asked for it. Safe to repeat.
    ///
    /// # Errors
    /// `Unfit` or `Refused` where the ledger refuses it again: it stays where it is.
    pub async fn journal_put_aside(
        &self,
        node: NodeId,
        allocation_id: Uuid,
        by: &str,
    ) -> Result<JournaledAgain, LedgerError> {
        self.call(SEARCH.of(Share::Journal), async |store| {
            journal_again(store, node, allocation_id, by).await
        })
        .await
    }
}

/// See [`crate::Ledger::journal_put_aside`].
async fn journal_again(
    store: &Store,
    node: NodeId,
    allocation_id: Uuid,
    by: &str,
) -> Result<JournaledAgain, LedgerError> {
    let (id, now_us) = (allocation_id.as_bytes().as_slice(), store.clock.now_us());
    let mut tx = store.begin().await?;
    let row: Option<(String, String)> =
        query_as("select raw, reason from journal_rejected where allocation_id = $1 limit 1")
            .bind(id)
            .fetch_optional(&mut *tx)
            .await?;
    let Some((entry, reason)) = row else { return Ok(JournaledAgain::Gone) };
    let entry = read_raw(&entry)?;
    let number = entry.number.clone();
    // Counters first, in the order in which a record is put aside.
    let found = named_counters::with_present_ids(&mut *tx, node, vec![entry], now_us).await?;
    let taken = found.iter().flat_map(|entry| &entry.taken).map(|taken| taken.counter_id);
    lock_all(&mut *tx, &taken.collect::<Vec<_>>()).await?;
    let rows: Vec<AsideRange> = query_as(
        "delete from journal_rejected where allocation_id = $1
         returning counter_id, first_value, last_value, step",
    )
    .bind(id)
    .fetch_all(&mut *tx)
    .await?;
    if rows.is_empty() {
        return Ok(JournaledAgain::Gone);
    }
    for row in &rows {
        take_back(&mut *tx, row, &found).await?;
    }
    let entries: Vec<&Entry> = found.iter().collect();
    let writing = store.writing(node, now_us);
    let write_mode = (EntrySource::Teller, WriteMode::Judged);
    let appended = journaling::journal(&mut *tx, &writing, &entries, write_mode).await?;
    let became = match (&appended.collisions[..], appended.known) {
        ([], 0) => JournaledAgain::Journaled,
        ([], _) => JournaledAgain::Known,
        _ => JournaledAgain::Collided,
    };
    let event = Event {
        at_us: now_us,
        kind: "journaled-again".into(),
        partition: None,
        epoch: None,
        node_id: Some(node),
        detail: serde_json::json!({
            "allocation_id": allocation_id, "number": number, "by": by, "result": became,
            "refused_for": reason,
        }),
    };
    events::insert_event(&mut *tx, &event).await?;
    commit_alone(store, tx).await?;
    Ok(became)
}

/// The values of a record that was put aside.
#[derive(FromRow)]
struct AsideRange {
    counter_id: i64,
    first_value: i64,
    last_value: i64,
    step: i64,
}

/// Reverts the count of a counter for a record that was put aside: its row of the journal counts
/// for the same.
async fn take_back(
    conn: &mut Conn,
    range: &AsideRange,
    entries: &[Entry],
) -> Result<(), LedgerError> {
    let AsideRange { counter_id, first_value: first, last_value: last, step } = *range;
    let epoch = entries.first().map_or(Ok(0), |entry| signed(entry.at.epoch, "epoch"))?;
    query(
        "update counter set journaled = journaled - $2 where counter_id = $1 and epoch = $3
         and step = $4 and start_value < $5 and journaled >= $2",
    )
    .bind(counter_id)
    .bind((last - first) / step.max(1) + 1)
    .bind(epoch)
    .bind(step)
    .bind(first)
    .execute(conn)
    .await?;
    Ok(())
}

/// The columns of a record that is put aside.
#[derive(FromRow)]
struct AsideRow {
    journal_rejected_id: i64,
    allocation_id: Vec<u8>,
    raw: String,
    reason: String,
    rejected_at_us: i64,
    acknowledged_by: Option<String>,
}

impl TryFrom<AsideRow> for PutAside {
    type Error = LedgerError;

    fn try_from(row: AsideRow) -> Result<Self, LedgerError> {
        Ok(PutAside {
            id: row.journal_rejected_id,
            allocation_id: read_uuid(&row.allocation_id, "allocation_id")?,
            entry: read_raw(&row.raw).ok(),
            reason: row.reason,
            rejected_at_us: row.rejected_at_us,
            acknowledged_by: row.acknowledged_by,
        })
    }
}
