//! What checkpoints bind, the checkpoints themselves, and what `audit verify` compares with them.
//! Signs nothing and judges nothing but whether a proof is right.
//!
//! A checkpoint follows from what several calls read. Whoever makes one names the incarnation of
//! all of them: what a ledger held before it went back is not written into the other one (F25).

use super::{CALL, Conn, QueryBuilder, Row, SEARCH, Store, commit, query, query_scalar};
use crate::Ledger;
use crate::columns::unreadable;
use crate::rows::KindText;
use crate::seal::{RowDigest, RowText};
use crate::{
    Bindable, Bound, JournalTexts, LedgerError, OneIncarnation, SealedBatch, SealedRow,
    SignedCheckpoint, Unsealed, Vouched,
};

/// Rows of before seals that are read at once.
const UNSEALED_PAGE: i64 = 10_000;

impl Ledger {
    /// The newest checkpoint: of one incarnation, or of whatever the ledger is.
    pub async fn last_checkpoint(
        &self,
        within: Option<OneIncarnation>,
    ) -> Result<Option<SignedCheckpoint>, LedgerError> {
        self.call(CALL, async |store| {
            let mut tx = store.begin_reading_in(within).await?;
            let newest = newest(&mut *tx).await?;
            tx.commit().await?;
            Ok(newest)
        })
        .await
    }

    /// Checkpoints behind one, in their order, at most `limit`.
    pub async fn checkpoints(
        &self,
        after: i64,
        limit: u32,
    ) -> Result<Vec<SignedCheckpoint>, LedgerError> {
        self.call(CALL, async |store| {
            let rows = query(
                "select checkpoint_no, body, public_key, signature from checkpoint \
                 where checkpoint_no > $1 order by checkpoint_no limit $2",
            );
            let rows = rows.bind(after).bind(i64::from(limit)).fetch_all(&store.reader).await?;
            rows.iter().map(checkpoint_of).collect()
        })
        .await
    }

    /// Writes a checkpoint over what was read in one incarnation, into that alone, and behind the
    /// one that it follows, or as the first; false where that is not the newest, since another
    /// process was quicker, or the ledger went back without a sign of it.
    pub async fn add_checkpoint(
        &self,
        within: OneIncarnation,
        last: Option<&SignedCheckpoint>,
        new: &SignedCheckpoint,
    ) -> Result<bool, LedgerError> {
        self.call(CALL, async |store| {
            let mut tx = store.begin_in(within).await?;
            if newest(&mut *tx).await?.as_ref() != last {
                tx.rollback().await?;
                return Ok(false);
            }
            let written = query(
                "insert into checkpoint (checkpoint_no, body, public_key, signature) \
                 values ($1, $2, $3, $4) on conflict do nothing",
            )
            .bind(new.number)
            .bind(&new.body)
            .bind(new.public_key.as_slice())
            .bind(new.signature.as_slice())
            .execute(&mut *tx)
            .await?;
            // A ledger that forgets it gets another: nobody has to be asked.
            commit(tx).await?;
            Ok(written.rows_affected() == 1)
        })
        .await
    }

    /// Rows of a table with ids above one and up to another, in their order, at most `limit`: of
    /// one incarnation, or of whatever the ledger is.
    pub async fn bindable(
        &self,
        within: Option<OneIncarnation>,
        table: Bindable,
        (after, upto): (i64, i64),
        limit: u32,
    ) -> Result<Vec<Bound>, LedgerError> {
        self.call(CALL, async |store| {
            let id = id_of(table);
            let mut query = select(table);
            query.push(" where ").push(id).push(" > ").push_bind(after);
            query.push(" and ").push(id).push(" <= ").push_bind(upto);
            query.push(" order by ").push(id).push(" limit ").push_bind(i64::from(limit));
            bound_rows(store, within, table, query).await
        })
        .await
    }

    /// Rows of a table with one of these ids, in their order.
    pub async fn bindable_among(
        &self,
        table: Bindable,
        ids: &[i64],
    ) -> Result<Vec<Bound>, LedgerError> {
        self.call(CALL, async |store| {
            let mut query = select(table);
            query.push(" where ").push(id_of(table)).push_among(ids.to_vec());
            query.push(" order by ").push(id_of(table));
            bound_rows(store, None, table, query).await
        })
        .await
    }

    /// The batches with one of these ids, but for those of before seals.
    pub async fn sealed_batches(&self, ids: &[i64]) -> Result<Vec<SealedBatch>, LedgerError> {
        self.call(CALL, async |store| {
            let mut query = QueryBuilder::new(
                "select batch_id, line_count, seal, node_id, partition_id, epoch, journaled_at_us \
                 from journal_batch where seal is not null and batch_id",
            );
            query.push_among(ids.to_vec());
            let rows = query.build().fetch_all(&store.reader).await?;
            rows.iter().map(batch_of).collect()
        })
        .await
    }

    /// Whatever rows of the journal point to.
    pub async fn journal_texts(&self) -> Result<JournalTexts, LedgerError> {
        self.call(SEARCH, async |store| {
            let mut texts = JournalTexts::default();
            let names = query("select name_id, name from journal_name");
            for row in names.fetch_all(&store.reader).await? {
                texts.names.insert(row.try_get("name_id")?, row.try_get("name")?);
            }
            let kinds =
                query("select kind_id, series_id, version, type_code, project from journal_kind");
            for row in kinds.fetch_all(&store.reader).await? {
                let kind = KindText {
                    series_id: row.try_get("series_id")?,
                    version: row.try_get("version")?,
                    type_code: row.try_get("type_code")?,
                    project: row.try_get("project")?,
                };
                texts.kinds.insert(row.try_get("kind_id")?, kind);
            }
            Ok(texts)
        })
        .await
    }

    /// In how many slices the journal's rows lie. More come behind them.
    pub async fn journal_slices(&self) -> Result<i64, LedgerError> {
        self.call(CALL, async |store| {
            let mut tx = store.reader.begin().await?;
            let slices = tx.journal_slices().await?;
            tx.commit().await?;
            Ok(slices)
        })
        .await
    }

    /// The rows of a slice of the journal as seals cover them, in no order.
    pub async fn journal_slice(
        &self,
        slice: i64,
        texts: &JournalTexts,
    ) -> Result<Vec<SealedRow>, LedgerError> {
        self.call(SEARCH, async |store| {
            let mut tx = store.reader.begin().await?;
            let rows = tx.journal_slice(slice, texts).await?;
            tx.commit().await?;
            Ok(rows)
        })
        .await
    }

    /// All rows of before seals, page by page: of one incarnation, or of whatever the ledger is.
    pub async fn unsealed(&self, within: Option<OneIncarnation>) -> Result<Unsealed, LedgerError> {
        let mut all = Unsealed { rows: 0, digest: [0; 32] };
        if !self.call(CALL, async |store| has_unsealed(store, within).await).await? {
            return Ok(all);
        }
        let mut after = (i64::MIN, i64::MIN);
        loop {
            let call = self.call(SEARCH, async |store| unsealed_page(store, within, after).await);
            let page = call.await?;
            let Some(last) = page.last() else { return Ok(all) };
            after = (last.0, last.1);
            for (_, _, bytes) in &page {
                // Each over all before it.
                let digest =
                    RowDigest::of("journal").bytes(Some(&all.digest)).bytes(Some(bytes)).end();
                all = Unsealed { rows: all.rows + 1, digest };
            }
        }
    }
}

async fn newest(conn: &mut Conn) -> Result<Option<SignedCheckpoint>, LedgerError> {
    let row = query(
        "select checkpoint_no, body, public_key, signature from checkpoint \
         order by checkpoint_no desc limit 1",
    );
    row.fetch_optional(conn).await?.as_ref().map(checkpoint_of).transpose()
}

/// The id of a table's rows.
fn id_of(table: Bindable) -> &'static str {
    match table {
        Bindable::Batches => "batch_id",
        Bindable::Events => "event_id",
        Bindable::Versions => "series_version_id",
    }
}

/// The beginning of a query for what is bound of a table.
fn select<'q>(table: Bindable) -> QueryBuilder<'q> {
    QueryBuilder::new(match table {
        Bindable::Batches => "select batch_id, seal, proof from journal_batch",
        Bindable::Events => {
            "select event_id, at_us, kind, partition_id, epoch, node_id, detail from event"
        }
        Bindable::Versions => {
            "select series_version_id, series_id, version, definition, saved_by, reason, \
             saved_at_us from series_version"
        }
    })
}

async fn bound_rows(
    store: &Store,
    within: Option<OneIncarnation>,
    table: Bindable,
    query: QueryBuilder<'_>,
) -> Result<Vec<Bound>, LedgerError> {
    let mut tx = store.begin_reading_in(within).await?;
    let rows = query.build().fetch_all(&mut *tx).await?;
    tx.commit().await?;
    let bound = |row: &Row| match table {
        Bindable::Batches => bound_batch(store, row),
        Bindable::Events => bound_event(row),
        Bindable::Versions => bound_version(row),
    };
    rows.iter().map(bound).collect()
}

async fn has_unsealed(store: &Store, within: Option<OneIncarnation>) -> Result<bool, LedgerError> {
    let mut tx = store.begin_reading_in(within).await?;
    let mut has = false;
    for statement in [
        "select batch_id from journal_batch where seal is null limit 1",
        "select counter_id from journal where batch_id is null limit 1",
    ] {
        let found: Option<i64> = query_scalar(statement).fetch_optional(&mut *tx).await?;
        if found.is_some() {
            has = true;
            break;
        }
    }
    tx.commit().await?;
    Ok(has)
}

/// The next rows, with what of their batches belongs to them.
async fn unsealed_page(
    store: &Store,
    within: Option<OneIncarnation>,
    (counter_id, first): (i64, i64),
) -> Result<Vec<(i64, i64, Vec<u8>)>, LedgerError> {
    let mut tx = store.begin_reading_in(within).await?;
    let rows = query(
        "select counter_id, first_value, last_value, step, allocation_id, number, scope, mask, \
         outline, rest, context, document_id, idempotency_key, series_id, version, type_code, \
         project, document_date, user_id, ip_address, payload_digest, issued_at_us, retry_count, \
         path, partition_id, epoch, node_id, journaled_at_us from journal_row \
         where (counter_id, first_value) > ($1, $2) and (batch_id is null \
         or batch_id in (select batch_id from journal_batch where seal is null)) \
         order by counter_id, first_value limit $3",
    )
    .bind(counter_id)
    .bind(first)
    .bind(UNSEALED_PAGE)
    .fetch_all(&mut *tx)
    .await?;
    tx.commit().await?;
    rows.iter().map(unsealed_row).collect()
}

fn unsealed_row(row: &Row) -> Result<(i64, i64, Vec<u8>), LedgerError> {
    let digest: &str = row.try_get("payload_digest")?;
    let (counter_id, first) = (row.try_get("counter_id")?, row.try_get("first_value")?);
    let text = RowText {
        counter_id,
        first,
        last: row.try_get("last_value")?,
        step: row.try_get("step")?,
        allocation_id: row.try_get("allocation_id")?,
        number: row.try_get("number")?,
        scope: row.try_get("scope")?,
        mask: row.try_get("mask")?,
        outline: row.try_get("outline")?,
        rest: row.try_get("rest")?,
        context: row.try_get("context")?,
        document_id: row.try_get("document_id")?,
        idempotency_key: row.try_get("idempotency_key")?,
        series_id: row.try_get("series_id")?,
        version: row.try_get("version")?,
        type_code: row.try_get("type_code")?,
        project: row.try_get("project")?,
        document_date: row.try_get("document_date")?,
        user_id: row.try_get("user_id")?,
        ip_address: row.try_get("ip_address")?,
        digest: Some(digest.as_bytes()),
        issued_at_us: row.try_get("issued_at_us")?,
        retry_count: row.try_get("retry_count")?,
        path: row.try_get("path")?,
    };
    let partition: i32 = row.try_get("partition_id")?;
    let head = RowDigest::of("journal_batch")
        .integer(Some(i64::from(partition)))
        .integer(row.try_get("epoch")?)
        .bytes(row.try_get("node_id")?)
        .integer(row.try_get("journaled_at_us")?)
        .bytes(Some(&text.bytes()))
        .end();
    Ok((counter_id, first, head.to_vec()))
}

fn checkpoint_of(row: &Row) -> Result<SignedCheckpoint, LedgerError> {
    Ok(SignedCheckpoint {
        number: row.try_get("checkpoint_no")?,
        body: row.try_get("body")?,
        public_key: row.try_get("public_key")?,
        signature: row.try_get("signature")?,
    })
}

fn batch_of(row: &Row) -> Result<SealedBatch, LedgerError> {
    Ok(SealedBatch {
        batch_id: row.try_get("batch_id")?,
        line_count: row.try_get::<Option<i32>>("line_count")?.unwrap_or(0),
        seal: row.try_get("seal")?,
        node: row.try_get("node_id")?,
        partition_id: row.try_get("partition_id")?,
        epoch: row.try_get("epoch")?,
        journaled_at_us: row.try_get("journaled_at_us")?,
    })
}

fn bound_batch(store: &Store, row: &Row) -> Result<Bound, LedgerError> {
    let id = row.try_get("batch_id")?;
    let seal: Option<&[u8]> = row.try_get("seal")?;
    let proof: Option<&[u8]> = row.try_get("proof")?;
    let Some(seal) = seal else {
        return Ok(Bound { id, standing: Vouched::Unsealed, digest: [0; 32] });
    };
    let digest: [u8; 32] =
        seal.try_into().map_err(|_| unreadable("journal_batch.seal", "other than 32 bytes"))?;
    let standing = match (proof, store.proof_key()) {
        (Some(proof), Some(key)) if proof == key.prove(&digest) => Vouched::Proven,
        (Some(_), Some(_)) => Vouched::Forged,
        _ => Vouched::Unproven,
    };
    Ok(Bound { id, standing, digest })
}

fn bound_event(row: &Row) -> Result<Bound, LedgerError> {
    let partition: Option<i32> = row.try_get("partition_id")?;
    let kind: &str = row.try_get("kind")?;
    let detail: &str = row.try_get("detail")?;
    let digest = RowDigest::of("event")
        .integer(row.try_get("at_us")?)
        .bytes(Some(kind.as_bytes()))
        .integer(partition.map(i64::from))
        .integer(row.try_get("epoch")?)
        .bytes(row.try_get("node_id")?)
        .bytes(Some(detail.as_bytes()))
        .end();
    Ok(Bound { id: row.try_get("event_id")?, standing: Vouched::Plain, digest })
}

fn bound_version(row: &Row) -> Result<Bound, LedgerError> {
    let version: i32 = row.try_get("version")?;
    let text = |column| row.try_get::<&str>(column).map(str::as_bytes);
    let digest = RowDigest::of("series_version")
        .integer(row.try_get("series_id")?)
        .integer(Some(i64::from(version)))
        .bytes(Some(text("definition")?))
        .bytes(Some(text("saved_by")?))
        .bytes(Some(text("reason")?))
        .integer(row.try_get("saved_at_us")?)
        .end();
    Ok(Bound { id: row.try_get("series_version_id")?, standing: Vouched::Plain, digest })
}
