//! The inquest over a ledger that went back under its users: which nodes must be heard, their
//! reports, and the end of the hold where nothing that was confirmed is missing any more (F25).
//!
//! Never opens a partition while a node is unheard that may have been confirmed anything: then the
//! hold is an operator's to end.

use std::collections::{BTreeMap, BTreeSet};

use numerator_runtime::node::NodeId;
use sqlx_macros::FromRow;

use crate::calls::CALL;
use crate::columns::{bytes, from_json, ownership, read_node, to_json};
use crate::dialect::{Conn, Transaction};
use crate::incarnation::Incarnation;
use crate::nodes::marks;
use crate::protocol::partitions::lock_all;
use crate::protocol::{incarnation, partitions};
use crate::query::{query, query_as, query_scalar};
use crate::reservations::lost;
use crate::store::{Store, commit};
use crate::{Agreement, At, Closing, Known, Ledger, LedgerError, Nodes, PartitionState, Report};

/// More epochs than this are not lost by a standby that lags: an operator looks.
const EPOCHS_LOST_MAX: u64 = 1_000;

/// Begins one under an incarnation that was just drawn. Nodes that an earlier one waited for, and
/// that are taken for dead by now, are waited for all the same: what they took is not known.
pub(crate) async fn begin(
    tx: &mut Transaction,
    Incarnation { nonce, .. }: Incarnation,
    now_us: i64,
) -> Result<(), LedgerError> {
    let mut roster = BTreeSet::new();
    for text in query_scalar::<String>("select roster from inquest").fetch_all(&mut **tx).await? {
        roster.extend(from_json::<Vec<NodeId>>(&text, "inquest.roster")?);
    }
    // One whose outbox was not whole when it was adopted has accounted for nothing.
    let present = query_scalar::<Vec<u8>>(
        "select node_id from node where left_at_us is null and adopted_at_us is null
         union select p.node_id from participant p
         join partition a on a.partition_id = p.partition_id
         where p.state = 'joined' and p.epoch >= a.epoch - 1 and a.owner = 'redis'
         and not exists (select 1 from closed_epoch c
             where c.partition_id = p.partition_id and c.epoch = p.epoch)",
    );
    for node in present.fetch_all(&mut **tx).await? {
        roster.insert(read_node(&node, "node.node_id")?);
    }
    end(&mut **tx).await?;
    query("insert into inquest (nonce, roster, begun_at_us) values ($1, $2, $3)")
        .bind(nonce.as_bytes().as_slice())
        .bind(to_json(&roster, "inquest.roster")?)
        .bind(now_us)
        .execute(&mut **tx)
        .await?;
    Ok(())
}

/// Whether one has begun and not ended.
pub(crate) async fn is_under_way(conn: &mut Conn) -> Result<bool, LedgerError> {
    let begun: Option<i64> =
        query_scalar("select begun_at_us from inquest").fetch_optional(conn).await?;
    Ok(begun.is_some())
}

/// Ends the inquest.
pub(crate) async fn end(conn: &mut Conn) -> Result<(), LedgerError> {
    query("delete from inquest_report").execute(&mut *conn).await?;
    query("delete from inquest").execute(&mut *conn).await?;
    Ok(())
}

impl Ledger {
    /// Reports to an inquest what a process remembers; false where there is none in the incarnation
    /// in which its node registered. Safe to repeat: the last report counts.
    pub async fn report(&self, report: &Report) -> Result<bool, LedgerError> {
        self.write(async |store| {
            let Report { node, identities, is_complete, known: Known { epochs, nodes } } = report;
            let nonce = store.last_seen.required(Some(*node))?.nonce;
            let mut tx = store.begin_as(*node).await?;
            if roster(&mut *tx, nonce).await?.is_none() {
                return Ok(false);
            }
            let epochs: Vec<(u32, u64)> =
                epochs.iter().map(|at| (at.partition, at.epoch)).collect();
            query(
                "insert into inquest_report (nonce, node_id, is_complete, identities, epochs,
                 seen)
                 values ($1, $2, $3, $4, $5, $6) on conflict (nonce, node_id) do update set
                 is_complete = excluded.is_complete, identities = excluded.identities,
                 epochs = excluded.epochs, seen = excluded.seen",
            )
            .bind(nonce.as_bytes().as_slice())
            .bind(bytes(node))
            .bind(is_complete)
            .bind(to_json(identities, "inquest_report.identities")?)
            .bind(to_json(&epochs, "inquest_report.epochs")?)
            .bind(to_json(nodes, "inquest_report.seen")?)
            .execute(&mut *tx)
            .await?;
            commit(tx).await?;
            Ok(true)
        })
        .await
    }

    /// Ends the inquest if every node was heard that may have been confirmed anything that this
    /// ledger lacks, by it, by a reporter or by the caller, and none was confirmed more than it has
    /// reported again: then all partitions are open, what came before is closed exact, and they
    /// have no owner yet.
    pub async fn agree(&self, node: NodeId, known: &Known) -> Result<Agreement, LedgerError> {
        self.call(CALL, async |store| agree(store, node, known).await).await
    }
}

impl Nodes<'_> {
    /// The heartbeats of nodes as the ledger shows them, also of those that left; `None` where it
    /// has no such node.
    pub async fn beats(self, asked: &[NodeId]) -> Result<Vec<Option<i64>>, LedgerError> {
        self.write(async |store| {
            let mut tx = store.begin_reading().await?;
            let mut beats = Vec::with_capacity(asked.len());
            for node in asked {
                beats.push(marks::marks(&mut *tx, *node).await?.map(|marks| marks.beat));
            }
            tx.commit().await?;
            Ok(beats)
        })
        .await
    }
}

/// The nodes that an inquest must hear; `None` where there is none under this nonce.
async fn roster(
    conn: &mut Conn,
    nonce: uuid::Uuid,
) -> Result<Option<BTreeSet<NodeId>>, LedgerError> {
    let text: Option<String> = query_scalar("select roster from inquest where nonce = $1")
        .bind(nonce.as_bytes().as_slice())
        .fetch_optional(conn)
        .await?;
    text.map(|text| from_json(&text, "inquest.roster")).transpose()
}

/// See [`crate::Ledger::agree`].
pub(crate) async fn agree(
    store: &Store,
    node: NodeId,
    known: &Known,
) -> Result<Agreement, LedgerError> {
    let nonce = store.last_seen.required(Some(node))?.nonce;
    let mut tx = store.begin_as(node).await?;
    incarnation::locked(store, &mut tx).await?;
    let Some(mut roster) = roster(&mut *tx, nonce).await? else {
        return Ok(Agreement::NoCheck);
    };
    let rows = lock_all(&mut *tx).await?;
    if rows.iter().any(|row| row.state != PartitionState::Held) {
        return Ok(Agreement::NoCheck);
    }
    let said = reports(&mut *tx, nonce).await?;
    let (mut seen, mut epochs): (BTreeSet<NodeId>, BTreeMap<u32, u64>) = Default::default();
    let (mut complete, mut incomplete) = (BTreeSet::new(), BTreeSet::new());
    for known in said.iter().map(|report| &report.known).chain([known]) {
        seen.extend(&known.nodes);
        for at in &known.epochs {
            let highest = epochs.entry(at.partition).or_default();
            *highest = at.epoch.max(*highest);
        }
    }
    for Report { identities, is_complete, .. } in &said {
        if *is_complete { &mut complete } else { &mut incomplete }
            .extend(identities.iter().copied());
    }
    // A node with a row is of the roster, or had left, or was adopted whole, or came later: what it
    // did before is here.
    for node in seen {
        if !roster.contains(&node) && marks::marks(&mut *tx, node).await?.is_none() {
            roster.insert(node);
        }
    }
    let missing: Vec<NodeId> = roster
        .iter()
        .filter(|node| !complete.contains(node) && !incomplete.contains(node))
        .copied()
        .collect();
    // A node that was there must remain: one that came later knows nothing of the time before.
    let is_witnessed = roster.iter().any(|node| complete.contains(node));
    if !is_witnessed || !missing.is_empty() || !incomplete.is_empty() {
        return Ok(Agreement::Waits { missing, incomplete: incomplete.into_iter().collect() });
    }
    let now_us = store.clock.now_us();
    for row in &rows {
        let told = epochs.get(&row.partition).copied().unwrap_or(0);
        let highest = row.epoch.max(row.seen_epoch).max(told);
        if highest - row.epoch > EPOCHS_LOST_MAX {
            let missing = Vec::new();
            return Ok(Agreement::Waits { missing, incomplete: Vec::new() });
        }
        open_exact(&mut *tx, row, highest, now_us).await?;
    }
    end(&mut *tx).await?;
    commit(tx).await?;
    Ok(Agreement::Agreed)
}

/// The reports under a nonce.
async fn reports(conn: &mut Conn, nonce: uuid::Uuid) -> Result<Vec<Report>, LedgerError> {
    query_as::<ReportRow>(
        "select node_id, is_complete, identities, epochs, seen from inquest_report
         where nonce = $1",
    )
    .bind(nonce.as_bytes().as_slice())
    .fetch_all_into(conn)
    .await
}

/// The columns of a report.
#[derive(FromRow)]
struct ReportRow {
    node_id: Vec<u8>,
    is_complete: bool,
    identities: String,
    epochs: String,
    seen: String,
}

impl TryFrom<ReportRow> for Report {
    type Error = LedgerError;

    fn try_from(row: ReportRow) -> Result<Self, LedgerError> {
        let epochs: Vec<(u32, u64)> = from_json(&row.epochs, "inquest_report.epochs")?;
        let at = |(partition, epoch)| At { partition, epoch };
        Ok(Report {
            node: read_node(&row.node_id, "inquest_report.node_id")?,
            identities: from_json(&row.identities, "inquest_report.identities")?,
            is_complete: row.is_complete,
            known: Known {
                epochs: epochs.into_iter().map(at).collect(),
                nodes: from_json(&row.seen, "inquest_report.seen")?,
            },
        })
    }
}

/// Opens a held partition above every known epoch. All that was handed out before is in the
/// journal: everything closed exact, and counters go on from what they have taken.
async fn open_exact(
    conn: &mut Conn,
    row: &partitions::LockedRow,
    highest: u64,
    now_us: i64,
) -> Result<(), LedgerError> {
    lost::spend(conn, row.partition, now_us).await?;
    let next = At { partition: row.partition, epoch: highest + 1 };
    let (id, epoch) = ownership(next)?;
    let unclosed = row.epoch.saturating_sub(1)..=highest;
    partitions::close_held(conn, row.partition, unclosed, Closing::Exact, now_us).await?;
    query(
        "update partition set epoch = $2, state = 'open', owner = 'none', incarnation = null,
         last_closing = 'exact', seen_epoch = 0, vouched_epoch = 0, actor = null,
         cause = 'all processes have reported what was confirmed to them', changed_at_us = $3
         where partition_id = $1",
    )
    .bind(id)
    .bind(epoch)
    .bind(now_us)
    .execute(conn)
    .await?;
    Ok(())
}
