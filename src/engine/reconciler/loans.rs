//! Partitions that were lent to the database by a process that has ended without taking them back:
//! killed in the middle of an import or a change. They go back to Redis like any that was lent.

use serde_json::json;

use crate::engine::node::Context;
use crate::ledger::{Event, Node};

/// Takes back what ended nodes have lent: those that the ledger does not show among the nodes that
/// live or wait to be adopted.
pub(super) async fn take_back_from_ended(context: &Context, nodes: &[Node]) {
    let rows = context.membership.news().borrow().clone();
    let lenders = rows.iter().filter(|row| row.is_lent).filter_map(|row| row.lender);
    let is_there = |lender| nodes.iter().any(|node| node.node_id == lender);
    if lenders.into_iter().all(is_there) {
        return;
    }
    let taken = match context.ledger.take_back_loans().await {
        Ok(taken) => taken,
        Err(error) => {
            tracing::info!(%error, "what an ended node has lent is taken back another time");
            return;
        }
    };
    for partition in taken {
        tracing::warn!(partition, "was lent by a node that has ended; is taken back");
        let event = Event {
            at_us: context.clock.now_us(),
            kind: "partition-taken-back".into(),
            partition: Some(partition),
            epoch: None,
            node_id: Some(context.membership.node()),
            detail: json!({ "why": "the node that lent it has ended" }),
        };
        if let Err(error) = context.ledger.events().record(&event).await {
            tracing::warn!(%error, kind = event.kind, "event not recorded in the ledger");
        }
    }
}
