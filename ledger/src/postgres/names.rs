//! Locks on names: of documents and callers' keys, which are numbered once whatever they count by.
//!
//! They last until their transaction ends. What another one wrote under a name is visible to the
//! statements that follow its lock.

use numerator_base::node::NodeId;
use sqlx::Row as _;

use super::Conn;
use crate::LedgerError;

/// Takes the transaction's locks on names, in rising order, so that two nodes cannot number one
/// document at the same time. Waits as long as the session does: whoever holds a name is at work.
pub(super) async fn lock_names(conn: &mut Conn, sorted: &[i64]) -> Result<(), LedgerError> {
    if sorted.is_empty() {
        return Ok(());
    }
    // All rows are joined before the first lock is asked for.
    sqlx::query(
        "select pg_advisory_xact_lock(n.name) from (select set_config('lock_timeout', \
         current_setting('numerator.lock_timeout'), true)) as patience, \
         (select name from unnest($1::bigint[]) as n (name) order by name) as n",
    )
    .bind(sorted)
    .execute(conn)
    .await?;
    Ok(())
}

/// Waits for whoever has one of the names, and keeps others from taking them; not those who only
/// ask under them. Waits as long as the transaction does for each.
pub(super) async fn share_names(conn: &mut Conn, sorted: &[i64]) -> Result<(), LedgerError> {
    if sorted.is_empty() {
        return Ok(());
    }
    sqlx::query(
        "select pg_advisory_xact_lock_shared(n.name) \
         from (select name from unnest($1::bigint[]) as n (name) order by name) as n",
    )
    .bind(sorted)
    .execute(conn)
    .await?;
    Ok(())
}

/// A moment in the order of transactions: the oldest that ran then.
pub(super) struct Moment(i64);

/// The moment of now.
pub(super) async fn moment(conn: &mut Conn) -> Result<Moment, LedgerError> {
    let oldest = "select (pg_snapshot_xmin(pg_current_snapshot())::text::numeric \
                  % 4294967296)::bigint";
    Ok(Moment(sqlx::query_scalar(oldest).fetch_one(conn).await?))
}

/// Has the next question go by statistics of this transaction's rows. By those of an empty journal
/// it would compare each row with each: nine minutes at 100,000.
///
/// Never waits: whom it would wait for may wait for this transaction. Then, and for a role that
/// does not own the journal, the statistics stay as they are.
pub(super) async fn know_rows(conn: &mut Conn) -> Result<(), LedgerError> {
    sqlx::query("analyze (skip_locked) journal").execute(conn).await?;
    Ok(())
}

/// A document of the rows that a node brought of these counters that was numbered by others since,
/// and that number.
pub(super) async fn numbered_since(
    conn: &mut Conn,
    Moment(oldest): &Moment,
    node: NodeId,
    counters: Vec<i64>,
) -> Result<Option<(String, String)>, LedgerError> {
    let row = sqlx::query(
        "select f.document_id, f.number from journal i join journal f \
         on f.document_id = i.document_id and f.series_id = i.series_id \
         where i.counter_id = any ($1) and i.node_id = $2 and f.node_id <> $2 \
         and age(f.xmin) <= age($3::text::xid) limit 1",
    )
    .bind(counters)
    .bind(node.0.as_bytes().as_slice())
    .bind(oldest.to_string())
    .fetch_optional(conn)
    .await?;
    row.map(|row| Ok((row.try_get("document_id")?, row.try_get("number")?))).transpose()
}
