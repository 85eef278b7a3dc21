//! Adopts one silent node: its outbox in each partition that it sent flights to, then the node
//! itself.
//!
//! Knows nothing of the watch that found it silent, and may take as long as the ledger takes.

use std::sync::Arc;

use super::outbox::{AdoptionError, adopt_outbox};
use crate::engine::node::{Context, News};
use crate::ledger::{Adopted, At, Node, Owner, PartitionState};
use crate::node::NodeId;

/// The outcome of the takeover of a silent node.
#[derive(Debug)]
pub(super) struct Adoption {
    /// The node, as it was found.
    pub(super) node: Node,
    /// Partitions in which nothing of it is left.
    pub(super) finished: Vec<u32>,
    /// The outcome of its entries there.
    pub(super) sum: Adopted,
    /// Whether it is retired, or beats again.
    pub(super) is_over: bool,
}

/// Adopts what a silent node left in each of the partitions, then retires it unless one of them is
/// not to be looked at (`None`), or cannot be adopted now. Not to be cancelled.
pub(super) async fn adopt_node(
    context: Arc<Context>,
    node: Node,
    partitions: Vec<Option<u32>>,
) -> Adoption {
    let news = context.membership.news().borrow().clone();
    let (total, dead) = (partitions.len(), node.node_id);
    let (sum, finished) = (Adopted::default(), Vec::new());
    let mut adoption = Adoption { node, finished, sum, is_over: false };
    for partition in partitions.into_iter().flatten() {
        match adopt(&context, &news, partition, dead).await {
            Ok(Some(adopted)) => {
                adoption.finished.push(partition);
                adoption.sum.add(adopted);
            }
            Ok(None) => {}
            Err(error) => {
                // Tried again at a later check; the workers handle what prevents it.
                tracing::info!(node = %dead, partition, %error, "not adopted yet");
            }
        }
    }
    if adoption.finished.len() < total {
        return adoption;
    }
    match context.ledger.nodes().retire(dead, adoption.node.beat).await {
        Ok(true) => {
            context.metrics.nodes_died.increment(1);
            let (label, sum) = (&adoption.node.label, &adoption.sum);
            tracing::warn!(node = %dead, label, ?sum, "adopted");
        }
        // It beats again: where it was barred it learns so and takes a new identity.
        Ok(false) => tracing::info!(node = %dead, "woke up while it was adopted"),
        Err(error) => {
            tracing::warn!(node = %dead, %error, "not retired yet");
            return adoption;
        }
    }
    adoption.is_over = true;
    adoption
}

/// Adopts one outbox; `None` while the partition has no Redis owner to read it from.
async fn adopt(
    context: &Context,
    news: &News,
    partition: u32,
    dead: NodeId,
) -> Result<Option<Adopted>, AdoptionError> {
    let row = news.iter().find(|row| row.partition == partition);
    let Some((row, redis)) = row.zip(context.redis.as_ref()) else { return Ok(None) };
    let (PartitionState::Open, Owner::Redis { incarnation }) = (row.state, &row.owner) else {
        return Ok(None);
    };
    let at = At { partition, epoch: row.epoch };
    adopt_outbox(context, redis, at, incarnation, dead).await.map(Some)
}
