//! Nodes: which are alive, which left, whose outbox was adopted.

pub(crate) mod marks;
pub(crate) mod rows;

use std::collections::{BTreeMap, HashMap};

use numerator_runtime::node::NodeId;
use sqlx_macros::FromRow;

use crate::calls::{CALL, noun};
use crate::columns::{bytes, from_json, read_node, to_json, unsigned_small};
use crate::connections::Share;
use crate::dialect::Conn;
use crate::incarnation::Incarnation;
use crate::last_seen::Marks;
use crate::nodes::marks::{is_swept, marks, must_show_marks};
use crate::protocol::lineage;
use crate::query::{query, query_as, query_scalar};
use crate::schema;
use crate::store::{Store, commit};
use crate::{CallFailure, Confirmed, LedgerError, NewNode, Node, NodeReport, OneIncarnation};

noun!(
    /// The nodes: registered, alive, ended.
    Nodes,
    nodes
);

impl Nodes<'_> {
    /// Enters a node with beat 0, in what was agreed on last.
    pub async fn register(self, node: &NewNode) -> Result<(), LedgerError> {
        let within = self.0.one_incarnation().await?;
        self.register_in(node, within).await
    }

    /// The same in one incarnation, and in no other: the next one may be agreed on meanwhile.
    ///
    /// # Errors
    /// `WentBack` where another one is in force.
    pub async fn register_in(
        self,
        node: &NewNode,
        within: OneIncarnation,
    ) -> Result<(), LedgerError> {
        self.call(CALL.of(Share::Watch), async |store| {
            let asked_at_us = store.clock.now_us();
            let mut tx = store.begin_in(within).await?;
            // An identity is never drawn twice: a row that is there is this call's own, repeated.
            query(
                "insert into node (node_id, label, version, started_at_us, schema)
                 values ($1, $2, $3, $4, $5) on conflict do nothing",
            )
            .bind(bytes(&node.node_id))
            .bind(&node.label)
            .bind(&node.version)
            .bind(node.started_at_us)
            .bind(schema::NEWEST)
            .execute(&mut *tx)
            .await?;
            commit(tx).await?;
            store.last_seen.register(node.node_id, within.0, asked_at_us);
            Ok(())
        })
        .await
    }

    /// Whether the ledger still has what it once confirmed to a node of any process. A confirmation
    /// of an earlier incarnation precedes the draw of the next one, if this ledger descends from
    /// it: the process or operator that ended that hold has decided (F36). A swept node is no
    /// excuse there: a branch sweeps what was confirmed outside it since.
    pub async fn remembers(self, confirmed: &Confirmed) -> Result<bool, LedgerError> {
        self.write(async |store| {
            let Confirmed { node, beat, batches, incarnation: number, nonce, at_us } = *confirmed;
            let mut tx = store.begin_reading().await?;
            let agreed = store.last_seen.required(None)?;
            let known = Incarnation { number, nonce };
            let shown = marks(&mut *tx, node).await?;
            let reaches = shown.is_some_and(|marks| marks.reach(Marks { beat, batches }));
            let is_remembered = if agreed == known {
                reaches || (shown.is_none() && is_swept(&mut *tx, node).await?)
            } else {
                let replaced_at_us = lineage::replaced_at_us(&mut *tx, known).await?;
                replaced_at_us.is_some_and(|replaced| reaches || at_us <= replaced)
            };
            tx.commit().await?;
            Ok(is_remembered)
        })
        .await
    }

    /// Raises the node's heartbeat counter by one, notes its report, and reads which other nodes
    /// live: each with its counter (F18: a heartbeat is a counter, never a time). It touches no
    /// table but that of the nodes, and waits for the node's own row only (F47).
    /// [`Ledger::partitions_as`] and [`Ledger::check_takes`] read the rest that a process must
    /// know.
    ///
    /// # Errors
    /// `NodeGone` when the node has left or was adopted; `WentBack` when the ledger has forgotten
    /// it, a beat or a batch of it.
    pub async fn heartbeat(
        self,
        node: NodeId,
        report: Option<&NodeReport>,
    ) -> Result<Vec<(NodeId, i64)>, LedgerError> {
        self.call(CALL.named("heartbeat").of(Share::Heartbeat), async |store| {
            let sight = report.map(|report| to_json(&report.sight, "node.sight")).transpose()?;
            let words = report.map(|report| to_json(&report.words, "node.report")).transpose()?;
            // What is confirmed is as of the request, or later.
            let asked_at_us = store.clock.now_us();
            let confirmed = store.last_seen.of(node);
            let Marks { beat, batches } = confirmed.unwrap_or_default();
            let taken = store.last_seen.takes().noted();
            // A row from a statement with its own commit may not be committed yet: SQLite gives it
            // first, and a full disk then takes it back. Only what was committed is confirmed.
            let mut tx = store.begin_as(node).await?;
            // A ledger that went back must not catch up beat by beat with what it has forgotten.
            let beaten: Option<i64> = query_scalar(
                "update node set beat = beat + 1, sight = $2, report = $5
                 where node_id = $1 and left_at_us is null and adopted_at_us is null
                 and beat >= $3 and batches >= $4 returning beat",
            )
            .bind(bytes(&node))
            .bind(sight)
            .bind(beat)
            .bind(batches)
            .bind(words)
            .fetch_optional(&mut *tx)
            .await?;
            let Some(beat) = beaten else {
                must_show_marks(store, &mut *tx, node).await?;
                return Err(LedgerError::NodeGone(node));
            };
            commit(tx).await?;
            if confirmed.is_some() {
                store.last_seen.confirm(node, Marks { beat, batches }, asked_at_us);
                // Once these are seen to be there, this beat shows it.
                store.last_seen.takes().beat_after(taken);
            }
            living(store).await
        })
        .await
    }

    /// Checks that the ledger shows what it confirmed to a node, in the incarnation in which that
    /// registered. Changes nothing.
    ///
    /// # Errors
    /// `WentBack` where it does not.
    pub async fn must_show(self, node: NodeId) -> Result<(), LedgerError> {
        self.write(async |store| {
            let mut tx = store.begin_reading_as(node).await?;
            must_show_marks(store, &mut *tx, node).await?;
            Ok(tx.commit().await?)
        })
        .await
    }

    /// Marks the node as having left: everything it handed out is in the journal.
    pub async fn leave(self, node: NodeId) -> Result<(), LedgerError> {
        self.write(async |store| {
            let now_us = store.clock.now_us();
            let mut tx = store.begin_as(node).await?;
            query("update node set left_at_us = $2 where node_id = $1 and left_at_us is null")
                .bind(bytes(&node))
                .bind(now_us)
                .execute(&mut *tx)
                .await?;
            query(
                "update participant set state = 'left', changed_at_us = $2
                 where node_id = $1 and state in ('joined', 'acknowledged')",
            )
            .bind(bytes(&node))
            .bind(now_us)
            .execute(&mut *tx)
            .await?;
            commit(tx).await
        })
        .await
    }

    /// Nodes that have not left and are not fully adopted.
    pub async fn list(self) -> Result<Vec<Node>, LedgerError> {
        self.call(CALL.of(Share::Watch), async |store| {
            let rows: Vec<NodeRow> = query_as(
                "select node_id, label, version, beat, started_at_us, sight, report,
                 told_at_us - heard_at_us as clock_ahead_us from node
                 where left_at_us is null and adopted_at_us is null order by started_at_us,
                 node_id",
            )
            .fetch_all(&store.reader)
            .await?;
            let mut joined = participations(store).await?;
            rows.into_iter()
                .map(|row| {
                    let node_id = read_node(&row.node_id, "node.node_id")?;
                    let sight = row.sight.map(|sight| from_json(&sight, "node.sight"));
                    let words = row.report.map(|words| from_json(&words, "node.report"));
                    Ok(Node {
                        node_id,
                        partitions: joined.remove(&node_id).unwrap_or_default(),
                        label: row.label,
                        version: row.version,
                        beat: row.beat,
                        started_at_us: row.started_at_us,
                        clock_ahead_us: row.clock_ahead_us,
                        sight: sight.transpose()?,
                        words: words.transpose()?,
                    })
                })
                .collect()
        })
        .await
    }

    /// Whether a heartbeat could be written now: writes the row of a node unchanged, or finds that
    /// there is none. An observer of stopped heartbeats learns from it that they could move.
    ///
    /// # Errors
    /// Why no heartbeat is written.
    pub async fn takes_heartbeats(self, node: Option<NodeId>) -> Result<(), LedgerError> {
        self.call(CALL.of(Share::Watch), async |store| {
            let mut tx = store.begin_brief(None).await?;
            query("update node set beat = beat where node_id = $1")
                .bind(node.as_ref().map(bytes))
                .execute(&mut *tx)
                .await?;
            commit(tx).await
        })
        .await
    }

    /// The present failures of this process's calls, by kind of call.
    pub fn call_failures(self) -> BTreeMap<&'static str, CallFailure> {
        self.0.store(Share::Common).call_failures.list()
    }

    /// Marks a silent node as adopted once no partition holds an outbox of it: compare-and-set,
    /// true only while its heartbeat is still `beat`.
    pub async fn retire(self, node: NodeId, beat: i64) -> Result<bool, LedgerError> {
        self.write(async |store| {
            let mut tx = store.begin().await?;
            let retired = query(
                "update node set adopted_at_us = coalesce(adopted_at_us, $3)
                 where node_id = $1 and beat = $2",
            )
            .bind(bytes(&node))
            .bind(beat)
            .bind(store.clock.now_us())
            .execute(&mut *tx)
            .await?;
            commit(tx).await?;
            Ok(retired.rows_affected() == 1)
        })
        .await
    }
}

/// The columns of a node. Its clock is ahead of the server's by the difference of what both said.
#[derive(FromRow)]
struct NodeRow {
    node_id: Vec<u8>,
    label: String,
    version: String,
    beat: i64,
    started_at_us: i64,
    sight: Option<String>,
    report: Option<String>,
    clock_ahead_us: Option<i64>,
}

/// Whether a process lives that does not know a migration.
pub(crate) async fn is_any_older(conn: &mut Conn, migration: i32) -> Result<bool, LedgerError> {
    let older: i64 = query_scalar(
        "select count(*) from node where left_at_us is null and adopted_at_us is null
         and schema < $1",
    )
    .bind(migration)
    .fetch_one(conn)
    .await?;
    Ok(older > 0)
}

/// The heartbeat counter of each node that has not left and is not fully adopted.
async fn living(store: &Store) -> Result<Vec<(NodeId, i64)>, LedgerError> {
    let rows: Vec<(Vec<u8>, i64)> = query_as(
        "select node_id, beat from node where left_at_us is null and adopted_at_us is null",
    )
    .fetch_all(&store.reader)
    .await?;
    rows.iter().map(|(node, beat)| Ok((read_node(node, "node.node_id")?, *beat))).collect()
}

/// The partitions in which each present node may have left an outbox.
async fn participations(store: &Store) -> Result<HashMap<NodeId, Vec<u32>>, LedgerError> {
    let rows: Vec<(Vec<u8>, i32)> = query_as(
        "select distinct p.node_id, p.partition_id from participant p
         join node n on n.node_id = p.node_id
         where n.left_at_us is null and n.adopted_at_us is null and p.state = 'joined'
         order by p.partition_id",
    )
    .fetch_all(&store.reader)
    .await?;
    let mut joined: HashMap<NodeId, Vec<u32>> = HashMap::new();
    for (node, partition) in rows {
        let node = read_node(&node, "participant.node_id")?;
        let partition = unsigned_small(partition, "participant.partition_id")?;
        joined.entry(node).or_default().push(partition);
    }
    Ok(joined)
}
