//! The checkpoints, and the rows of before seals, which the first of them binds as a whole. Signs
//! nothing.
//!
//! A checkpoint follows from what several calls read. Whoever makes one names the incarnation of
//! all of them: what a ledger held before it went back is not written into the other one (F25).

use super::{CALL, Conn, Row, SEARCH, Store, commit, query, query_scalar};
use crate::Ledger;
use crate::seal::{RowDigest, RowText};
use crate::{LedgerError, OneIncarnation, SignedCheckpoint, Unsealed};

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
