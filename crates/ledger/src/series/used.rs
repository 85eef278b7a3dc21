//! Whether a series has counters, and what it may not do any more then. Numbers that are kept as
//! written have counters of their own: they keep a series in its partition (F8) and from removal,
//! and say nothing of its templates.

use crate::columns::small;
use crate::dialect::Conn;
use crate::query::{query, query_scalar};
use crate::{LedgerError, SeriesRefusal, SeriesVersion};

/// Whether a series has counters of serials. It gets no further one before the transaction ends:
/// the creator of one holds the row of the series, or waits for it.
pub(crate) async fn is_used(conn: &mut Conn, series_id: i64) -> Result<bool, LedgerError> {
    query("select partition from series where series_id = $1")
        .for_update()
        .bind(series_id)
        .fetch_one(&mut *conn)
        .await?;
    let counter: Option<i64> = query_scalar(
        "select counter_id from counter where series_id = $1 and serial <> 'as-written' limit 1",
    )
    .bind(series_id)
    .fetch_optional(conn)
    .await?;
    Ok(counter.is_some())
}

/// Refuses the removal of a series that keeps numbers as written; its row is locked.
///
/// # Errors
/// `Series` with `KeepsNumbers`.
pub(crate) async fn must_keep_no_number(
    conn: &mut Conn,
    series: &SeriesVersion,
) -> Result<(), LedgerError> {
    let kept: Option<i64> = query_scalar(
        "select counter_id from counter where series_id = $1 and serial = 'as-written' limit 1",
    )
    .bind(series.series_id)
    .fetch_optional(conn)
    .await?;
    match kept {
        None => Ok(()),
        Some(_) => {
            let code = series.definition.code.clone();
            Err(SeriesRefusal::KeepsNumbers { code }.into())
        }
    }
}

/// Refuses to move a series that keeps numbers as written: two partitions would count them (F8).
///
/// # Errors
/// `Series` with `KeepsNumbers`.
pub(crate) async fn must_keep_home(
    conn: &mut Conn,
    before: &SeriesVersion,
    after: &SeriesVersion,
) -> Result<(), LedgerError> {
    if before.partition == after.partition {
        return Ok(());
    }
    must_keep_no_number(conn, after).await
}

/// A series without a counter begins with this version: no counter is created for an earlier one
/// any more.
pub(crate) async fn start_anew(conn: &mut Conn, after: &SeriesVersion) -> Result<(), LedgerError> {
    query("update series set used_since = $2, partition = $3 where series_id = $1")
        .bind(after.series_id)
        .bind(small(after.version, "version")?)
        .bind(small(after.partition, "partition")?)
        .execute(conn)
        .await?;
    Ok(())
}
