//! The checkpoints. Signs nothing.
//!
//! A checkpoint follows from what several calls read. Its maker names the incarnation in which all
//! of them read. A checkpoint of a ledger that went back is refused by the later incarnation (F25).

pub(crate) mod bindable;
pub(crate) mod rows;

use crate::calls::noun;
use crate::dialect::Conn;
use crate::query::{query, query_as};
use crate::store::commit;
use crate::{LedgerError, OneIncarnation, SignedCheckpoint};

noun!(
    /// The signed checkpoints, and what they bind.
    Checkpoints,
    checkpoints
);

impl Checkpoints<'_> {
    /// The newest checkpoint: of one incarnation, or of the ledger's present one, whichever it is.
    pub async fn last(
        self,
        within: Option<OneIncarnation>,
    ) -> Result<Option<SignedCheckpoint>, LedgerError> {
        self.write(async |store| {
            let mut tx = store.begin_reading_in(within).await?;
            let newest = newest(&mut *tx).await?;
            tx.commit().await?;
            Ok(newest)
        })
        .await
    }

    /// Checkpoints behind one, in their order, at most `limit`.
    pub async fn list(self, after: i64, limit: u32) -> Result<Vec<SignedCheckpoint>, LedgerError> {
        self.read(async |reader| {
            let rows = query_as(
                "select checkpoint_no, body, public_key, signature from checkpoint
                 where checkpoint_no > $1 order by checkpoint_no limit $2",
            );
            Ok(rows.bind(after).bind(i64::from(limit)).fetch_all(reader).await?)
        })
        .await
    }

    /// Writes a checkpoint over what was read in one incarnation, into that one only, and after the
    /// one that it follows, or as the first; false where that is not the newest, since another
    /// process was quicker, or the ledger went back without a sign of it.
    pub async fn add(
        self,
        within: OneIncarnation,
        last: Option<&SignedCheckpoint>,
        new: &SignedCheckpoint,
    ) -> Result<bool, LedgerError> {
        self.write(async |store| {
            let mut tx = store.begin_in(within).await?;
            if newest(&mut *tx).await?.as_ref() != last {
                tx.rollback().await?;
                return Ok(false);
            }
            let written = query(
                "insert into checkpoint (checkpoint_no, body, public_key, signature)
                 values ($1, $2, $3, $4) on conflict do nothing",
            )
            .bind(new.number)
            .bind(&new.body)
            .bind(new.public_key.as_slice())
            .bind(new.signature.as_slice())
            .execute(&mut *tx)
            .await?;
            // A ledger that loses it gets another: no other process must report it.
            commit(tx).await?;
            Ok(written.rows_affected() == 1)
        })
        .await
    }
}

async fn newest(conn: &mut Conn) -> Result<Option<SignedCheckpoint>, LedgerError> {
    let row = query_as(
        "select checkpoint_no, body, public_key, signature from checkpoint
         order by checkpoint_no desc limit 1",
    );
    Ok(row.fetch_optional(conn).await?)
}
