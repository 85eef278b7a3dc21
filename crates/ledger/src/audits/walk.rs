//! The journal's rows as `audit verify` compares them with their seals: all as of one time, slice
//! by slice in storage order, regardless of concurrent writes and archiving.

use std::sync::{Arc, Mutex};

use futures_util::future::try_join_all;
use sqlx_macros::FromRow;
use tokio::sync::mpsc;

use crate::KindText;
use crate::calls::WALK;
use crate::dialect::{Conn, Transaction};
use crate::query::{QueryBuilder, query_as, query_scalar};
use crate::{Audits, Checkpoints, JournalSlice, JournalTexts, LedgerError, SealedBatch};

impl Checkpoints<'_> {
    /// The batches with one of these ids.
    pub async fn batches_among(self, ids: &[i64]) -> Result<Vec<SealedBatch>, LedgerError> {
        self.read(async |reader| {
            let mut query = QueryBuilder::new(
                "select batch_id, line_count, seal, node_id, partition_id, epoch, journaled_at_us
                 from journal_batch where batch_id",
            );
            query.push_among(ids.to_vec());
            let rows: Vec<BatchRow> = query.build().typed().fetch_all(reader).await?;
            Ok(rows.into_iter().map(SealedBatch::from).collect())
        })
        .await
    }
}

impl Audits<'_> {
    /// Sends all rows of the journal as of one time, in slices of no order, until all are read or
    /// the receiver is closed. Returns the batches of that time with ids between these: their rows
    /// existed, unless they were removed.
    pub async fn walk_journal(
        self,
        to: mpsc::Sender<JournalSlice>,
        between: Vec<(i64, i64)>,
    ) -> Result<Vec<i64>, LedgerError> {
        self.call(WALK, async |store| {
            let mut connections = store.pool().begin_together().await?;
            for tx in &mut connections {
                tx.allow_import().await?;
            }
            let Some(one) = connections.first_mut() else { return Ok(Vec::new()) };
            let texts = Arc::new(texts(&mut **one).await?);
            let mut batches = Vec::new();
            for (first, last) in between {
                let there = query_scalar::<i64>(
                    "select batch_id from journal_batch where batch_id between $1 and $2",
                );
                batches.extend(there.bind(first).bind(last).fetch_all(&mut **one).await?);
            }
            if let Some((first, last)) = one.journal_range().await? {
                let walk = SliceWalk { next: Mutex::new(Some(first)), first, last, texts, to };
                try_join_all(connections.iter_mut().map(|tx| walk.read(tx))).await?;
            }
            for tx in connections {
                tx.commit().await?;
            }
            Ok(batches)
        })
        .await
    }
}

/// The work that two connections share.
struct SliceWalk {
    /// Where the next slice begins; none after the last.
    next: Mutex<Option<i64>>,
    first: i64,
    last: i64,
    texts: Arc<JournalTexts>,
    to: mpsc::Sender<JournalSlice>,
}

impl SliceWalk {
    /// Reads slices as long as there are any.
    async fn read(&self, conn: &mut Transaction) -> Result<(), LedgerError> {
        let places = conn.journal_slice_places();
        loop {
            let Some(from) = self.take(places) else { return Ok(()) };
            let rows = conn.journal_slice(from).await?;
            if rows.is_empty() {
                // A row with a distant place may have been made by other means.
                let behind = from.saturating_add(places);
                self.go_on_at(conn.journal_place_from(behind).await?);
                continue;
            }
            let (done, of) =
                (from.saturating_sub(self.first), self.last.saturating_sub(self.first));
            let slice = JournalSlice { rows, texts: Arc::clone(&self.texts), done, of };
            if self.to.send(slice).await.is_err() {
                return Ok(());
            }
        }
    }

    fn take(&self, places: i64) -> Option<i64> {
        let mut next = self.next.lock().expect("no holder of this lock panics");
        let from = next.filter(|from| *from <= self.last)?;
        *next = from.checked_add(places);
        Some(from)
    }

    fn go_on_at(&self, place: Option<i64>) {
        let mut next = self.next.lock().expect("no holder of this lock panics");
        *next = next.zip(place).map(|(next, place)| next.max(place));
    }
}

/// The texts that rows of the journal point to.
async fn texts(conn: &mut Conn) -> Result<JournalTexts, LedgerError> {
    let names = query_as("select name_id, name from journal_name");
    let names = names.fetch_all(&mut *conn).await?.into_iter().collect();
    let kinds = query_as::<KindRow>(
        "select kind_id, series_id, version, type_code, project from journal_kind",
    );
    let kinds = kinds.fetch_all(&mut *conn).await?.into_iter();
    Ok(JournalTexts { names, kinds: kinds.map(|row| (row.kind_id, row.kind)).collect() })
}

/// A kind and its id.
#[derive(FromRow)]
struct KindRow {
    kind_id: i32,
    #[sqlx(flatten)]
    kind: KindText,
}

/// The columns of a batch. The owner of the table may have removed some values.
#[derive(FromRow)]
struct BatchRow {
    batch_id: i64,
    line_count: Option<i32>,
    seal: Option<Vec<u8>>,
    node_id: Vec<u8>,
    partition_id: i32,
    epoch: i64,
    journaled_at_us: i64,
}

impl From<BatchRow> for SealedBatch {
    fn from(row: BatchRow) -> Self {
        SealedBatch {
            batch_id: row.batch_id,
            line_count: row.line_count.unwrap_or_default(),
            seal: row.seal.unwrap_or_default(),
            node: row.node_id,
            partition_id: row.partition_id,
            epoch: row.epoch,
            journaled_at_us: row.journaled_at_us,
        }
    }
}
