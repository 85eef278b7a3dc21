//! What the ledger shows of what it confirmed to a node: by the node's row, by the identities that
//! were swept, and by the numbers that no heartbeat shows yet. Changes nothing but the count of a
//! node's batches.

use std::collections::HashSet;

use numerator_runtime::node::NodeId;
use uuid::Uuid;

use crate::LedgerError;
use crate::archive::names;
use crate::columns::bytes;
use crate::dialect::Conn;
use crate::last_seen::Marks;
use crate::last_seen::takes::ConfirmedNumber;
use crate::query::{QueryBuilder, query, query_as, query_scalar};
use crate::store::Store;

/// Refuses to act for a node whose confirmations the ledger has forgotten (F9, F34).
pub(crate) async fn must_be_remembered(
    store: &Store,
    conn: &mut Conn,
    node: NodeId,
) -> Result<(), LedgerError> {
    if store.last_seen.of(node).is_none() {
        return Ok(());
    }
    let numbers = store.last_seen.takes().numbers();
    must_show_marks(store, conn, node).await?;
    must_be_journaled(conn, &numbers).await
}

/// Refuses a node whose row lacks what was confirmed to it; a swept row excuses it (F37).
pub(crate) async fn must_show_marks(
    store: &Store,
    conn: &mut Conn,
    node: NodeId,
) -> Result<(), LedgerError> {
    let Some(confirmed) = store.last_seen.of(node) else { return Ok(()) };
    match marks(conn, node).await? {
        Some(marks) if marks.reach(confirmed) => Ok(()),
        None if is_swept(conn, node).await? => Ok(()),
        _ => {
            let what = format!("it has forgotten what it confirmed to node {node}");
            Err(LedgerError::WentBack(what))
        }
    }
}

/// The marks of a node in the ledger, also of one that left; `None` where it has no such node.
pub(crate) async fn marks(conn: &mut Conn, node: NodeId) -> Result<Option<Marks>, LedgerError> {
    let row: Option<(i64, i64)> = query_as("select beat, batches from node where node_id = $1")
        .bind(bytes(&node))
        .fetch_optional(conn)
        .await?;
    Ok(row.map(|(beat, batches)| Marks { beat, batches }))
}

/// Counts a batch that the node journals in this transaction; `None` where it has no row.
pub(crate) async fn count_batch(
    conn: &mut Conn,
    node: NodeId,
) -> Result<Option<Marks>, LedgerError> {
    let batches: Option<i64> =
        query_scalar("update node set batches = batches + 1 where node_id = $1 returning batches")
            .bind(bytes(&node))
            .fetch_optional(conn)
            .await?;
    Ok(batches.map(|batches| Marks { beat: 0, batches }))
}

/// Whether a node's row was swept: this ledger had it, with all that was ever confirmed to it.
pub(crate) async fn is_swept(conn: &mut Conn, node: NodeId) -> Result<bool, LedgerError> {
    let found = query("select 1 from swept_node where node_id = $1").bind(bytes(&node));
    Ok(found.fetch_optional(conn).await?.is_some())
}

/// Refuses where a number is missing that the database path took, or that was registered by hand,
/// and committed for this process (F34). It looks for the allocation: a counter may have been taken
/// past its value again. Of a process that slept for long, some may have moved to an archive.
pub(crate) async fn must_be_journaled(
    conn: &mut Conn,
    numbers: &[ConfirmedNumber],
) -> Result<(), LedgerError> {
    if numbers.is_empty() {
        return Ok(());
    }
    let mut query = QueryBuilder::new(
        "select allocation_id from journal where path = 'database' and allocation_id",
    );
    let ids = numbers.iter().map(|number| number.allocation.as_bytes().to_vec());
    query.push_among(ids.collect::<Vec<_>>());
    let present: Vec<Vec<u8>> = query.build().scalar().fetch_all(&mut *conn).await?;
    let present: HashSet<Vec<u8>> = present.into_iter().collect();
    for number in numbers {
        if !present.contains(number.allocation.as_bytes().as_slice())
            && !is_registered(conn, number.allocation).await?
            && !names::is_archived(conn, number.archived_as).await?
        {
            let why = "it has forgotten numbers that it confirmed";
            return Err(LedgerError::WentBack(why.into()));
        }
    }
    Ok(())
}

/// Whether the journal has a number of an allocation that was given by hand. No index of the
/// journal leads there: the row of its registration does.
async fn is_registered(conn: &mut Conn, allocation: Uuid) -> Result<bool, LedgerError> {
    let found = query(
        "select 1 from life l join journal j on j.counter_id = l.counter_id
         and j.first_value = l.first_value and j.allocation_id = l.subject
         where l.subject = $1 and l.act = 'registered' limit 1",
    )
    .bind(allocation.as_bytes().as_slice())
    .fetch_optional(conn)
    .await?;
    Ok(found.is_some())
}
