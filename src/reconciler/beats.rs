//! Who is alive, for whoever only looks: a short watch of the heartbeats.
//!
//! Good for reports only. Whoever adopts must itself beat and read throughout (F18): `watch` does.

use std::collections::HashMap;
use std::time::Duration;

use tokio::time::Instant;

use crate::backoff::Backoff;
use crate::ledger::{LedgerError, Node, SharedLedger};

/// A node, and whether its heartbeat was seen to move.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Observed {
    /// The node.
    pub node: Node,
    /// Whether it beats.
    pub is_beating: bool,
}

/// Watches all heartbeats until each has moved, at most for `patience`.
///
/// # Errors
/// When the ledger cannot be read.
pub async fn observe(
    ledger: &SharedLedger,
    patience: Duration,
) -> Result<Vec<Observed>, LedgerError> {
    let deadline = Instant::now() + patience;
    let mut wait = Backoff::new(Duration::from_millis(20), Duration::from_millis(200));
    let mut first_seen = HashMap::new();
    loop {
        let nodes = ledger.nodes().await?;
        let observed: Vec<Observed> = nodes
            .into_iter()
            .map(|node| {
                let first = *first_seen.entry(node.node_id).or_insert(node.beat);
                Observed { is_beating: node.beat != first, node }
            })
            .collect();
        if observed.iter().all(|seen| seen.is_beating) || Instant::now() >= deadline {
            return Ok(observed);
        }
        wait.wait().await;
    }
}
