//! What closed epochs lost, looked for in bounded slices: a counter starts in a new epoch with its
//! base alone, however long the epoch before was (F17, F31).
//!
//! ```text
//!   first touch ── looks at a few rows ──▶ all seen: gaps registered
//!                                     ╰──▶ a row of `unsettled` ── slice ── slice ──▶ goes
//! ```
//!
//! Each slice is a separate transaction, so that a crash loses one slice. A value is registered
//! only while its counter's row is locked, after looking once more: the writer of a late row holds
//! that lock too, and so finds the gap, or has its row found.

use sqlx_macros::FromRow;

use crate::columns::{Word, signed, unsigned};
use crate::counters::table::lock_all;
use crate::dialect::Conn;
use crate::protocol::chronology;
use crate::query::{QueryBuilder, query, query_as, query_scalar};
use crate::register::gaps::{self, Loss};
use crate::store::commit;
use crate::{GapReason, Ledger, LedgerError, Unsettled};

/// Rows that a transaction which starts counters looks at in all, so that a short epoch is settled
/// immediately. Everything beyond is settled in the background.
pub(crate) const START_ROWS_MAX: u32 = 1_000;

/// Values of a closed epoch that have not all been looked at.
struct UnsettledSpan {
    /// Its search begins after what has been looked at.
    loss: Loss,
    /// How many values its counter had counted,
    journaled: i64,
    /// and how many were found so far.
    found: i64,
}

/// What one look saw.
struct Look {
    /// Rows looked at, about.
    rows: u32,
    /// The last value looked at.
    upto: i64,
    holes: Vec<(i64, i64)>,
    /// Values that rows of the epoch account for.
    found: i64,
}

/// Looks for what a counter lost whose row is locked, at no more than `rows_left` rows, which
/// become fewer; what is left is noted.
pub(crate) async fn begin(
    conn: &mut Conn,
    loss: Loss,
    journaled: i64,
    rows_left: &mut u32,
    now_us: i64,
) -> Result<(), LedgerError> {
    let mut stretch = UnsettledSpan { loss, journaled, found: 0 };
    if *rows_left > 0 {
        let look = stretch.look(conn, *rows_left).await?;
        *rows_left = rows_left.saturating_sub(look.rows);
        stretch.note(conn, look, now_us).await?;
    }
    if stretch.is_settled() {
        return Ok(());
    }
    let UnsettledSpan { loss, journaled, found } = stretch;
    query(
        "insert into unsettled (counter_id, epoch, after_value, upto_value, step, reason,
         journaled, found, noted_at_us) values ($1, $2, $3, $4, $5, $6, $7, $8, $9)",
    )
    .bind(loss.counter_id)
    .bind(signed(loss.epoch, "epoch")?)
    .bind(loss.after)
    .bind(loss.upto)
    .bind(loss.step)
    .bind(loss.reason.word())
    .bind(journaled)
    .bind(found)
    .bind(now_us)
    .execute(conn)
    .await?;
    Ok(())
}

impl Ledger {
    /// Looks through the next slice of what is unsettled, at most about `rows_max` rows of the
    /// journal: values of closed epochs, or the last date of a family. False when nothing is left
    /// to be looked at. What is unsettled in partitions that are held stays so.
    pub async fn settle_slice(&self, rows_max: u32) -> Result<bool, LedgerError> {
        // Bounded by its rows; but a slow disk must not cost others their connections.
        self.search(async |store| {
            // Asked again and again, and next to always there is nothing: then nothing is locked.
            let some: i64 = query_scalar(
                "select count(*) from (select 1 as one from unsettled where after_value <
                 upto_value
                 union all select 1 as one from chronology_search limit 1) as unsettled_ones",
            )
            .fetch_one(&store.reader)
            .await?;
            if some == 0 {
                return Ok(false);
            }
            let (now_us, rows_max) = (store.clock.now_us(), rows_max.max(1));
            let mut tx = store.begin().await?;
            // First what requests wait for.
            if chronology::search_slice(&mut *tx, rows_max).await? {
                commit(tx).await?;
                return Ok(true);
            }
            let Some(unsettled_id) = oldest(&mut *tx).await? else { return Ok(false) };
            // Another transaction may have done its last slice meanwhile.
            let Some(mut stretch) = lock(&mut *tx, unsettled_id).await? else {
                return Ok(true);
            };
            let mut look = stretch.look(&mut *tx, rows_max).await?;
            if !look.holes.is_empty() {
                // Rows only come: where nothing is missing, nothing will be. A hole may have been
                // filled by a row that was not committed yet.
                lock_all(&mut *tx, &[stretch.loss.counter_id]).await?;
                look = stretch.look(&mut *tx, rows_max).await?;
            }
            stretch.note(&mut *tx, look, now_us).await?;
            if stretch.is_settled() {
                query("delete from unsettled where unsettled_id = $1")
                    .bind(unsettled_id)
                    .execute(&mut *tx)
                    .await?;
            } else {
                query("update unsettled set after_value = $2, found = $3 where unsettled_id = $1")
                    .bind(unsettled_id)
                    .bind(stretch.loss.after)
                    .bind(stretch.found)
                    .execute(&mut *tx)
                    .await?;
            }
            commit(tx).await?;
            Ok(true)
        })
        .await
    }

    /// What is unsettled, oldest first, at most `limit`.
    pub async fn unsettled(&self, limit: u32) -> Result<Vec<Unsettled>, LedgerError> {
        self.read(async |reader| {
            let mut query = QueryBuilder::new(
                "select counter_id, epoch, after_value, upto_value, step, reason, journaled, found
                 from unsettled order by unsettled_id limit ",
            );
            query.push_bind(gaps::bounded(limit));
            query.build().typed::<UnsettledRow>().fetch_all_into(reader).await
        })
        .await
    }
}

/// The oldest stretch that has not been looked through, unless its partition is held: then nothing
/// is certain.
async fn oldest(conn: &mut Conn) -> Result<Option<i64>, LedgerError> {
    Ok(query_scalar(
        "select u.unsettled_id from unsettled u join counter c on c.counter_id = u.counter_id
         join partition p on p.partition_id = c.partition_id
         where u.after_value < u.upto_value and p.state <> 'held'
         order by u.unsettled_id limit 1",
    )
    .fetch_optional(conn)
    .await?)
}

async fn lock(conn: &mut Conn, unsettled_id: i64) -> Result<Option<UnsettledSpan>, LedgerError> {
    query_as::<UnsettledRow>(
        "select counter_id, epoch, after_value, upto_value, step, reason, journaled, found
         from unsettled where unsettled_id = $1 and after_value < upto_value",
    )
    .for_update()
    .bind(unsettled_id)
    .fetch_optional_into(conn)
    .await
}

impl UnsettledSpan {
    /// Whether it has been looked through, and every value that was counted is there.
    fn is_settled(&self) -> bool {
        self.loss.after >= self.loss.upto && self.found >= self.journaled
    }

    /// Looks at the next values, of at most so many rows.
    async fn look(&self, conn: &mut Conn, rows_max: u32) -> Result<Look, LedgerError> {
        let Loss { counter_id, after, upto, step, epoch, .. } = self.loss;
        let (rows, upto) = gaps::window(conn, counter_id, after, upto, rows_max).await?;
        // Between two rows there is at most one run, and one at either end.
        let runs_max = rows_max.saturating_add(1);
        let holes = gaps::search(conn, counter_id, after, upto, Some(step), runs_max).await?;
        let found: i64 = query_scalar(
            "select cast(coalesce(sum(n), 0) as bigint) from (
             select (last_value - first_value) / step + 1 as n from journal_row
               where counter_id = $1 and first_value > $2 and first_value <= $3
               and epoch = $4 and step = $5
             union all select (last_value - first_value) / step + 1 from journal_rejected
               where counter_id = $1 and first_value > $2 and first_value <= $3
               and step = $5) as counted",
        )
        .bind(counter_id)
        .bind(after)
        .bind(upto)
        .bind(signed(epoch, "epoch")?)
        .bind(step)
        .fetch_one(conn)
        .await?;
        Ok(Look { rows, upto, holes, found })
    }

    /// Registers what a look found missing, while the counter's row is locked, and goes on.
    async fn note(&mut self, conn: &mut Conn, look: Look, now: i64) -> Result<(), LedgerError> {
        gaps::register(conn, &self.loss, &look.holes, now).await?;
        self.loss.after = look.upto;
        self.found += look.found;
        Ok(())
    }
}

/// The columns of what is unsettled.
#[derive(FromRow)]
struct UnsettledRow {
    counter_id: i64,
    epoch: i64,
    after_value: i64,
    upto_value: i64,
    step: i64,
    reason: String,
    journaled: i64,
    found: i64,
}

impl TryFrom<UnsettledRow> for UnsettledSpan {
    type Error = LedgerError;

    fn try_from(row: UnsettledRow) -> Result<Self, LedgerError> {
        let loss = Loss {
            counter_id: row.counter_id,
            after: row.after_value,
            upto: row.upto_value,
            step: row.step,
            reason: GapReason::read(&row.reason)?,
            epoch: unsigned(row.epoch, "unsettled.epoch")?,
        };
        Ok(UnsettledSpan { loss, journaled: row.journaled, found: row.found })
    }
}

impl TryFrom<UnsettledRow> for Unsettled {
    type Error = LedgerError;

    fn try_from(row: UnsettledRow) -> Result<Self, LedgerError> {
        let UnsettledRow { after_value: after, upto_value: upto, step, .. } = row;
        let is_looked_through = after >= upto;
        Ok(Unsettled {
            counter_id: row.counter_id,
            epoch: unsigned(row.epoch, "unsettled.epoch")?,
            left: upto.abs_diff(after) / step.unsigned_abs().max(1),
            gone: if is_looked_through { row.journaled.abs_diff(row.found) } else { 0 },
        })
    }
}
