//! How a process joins its ledger as a node: once the ledger has all records that last-seen marks
//! report, and as a node that remembers retries as long as the others.

use std::sync::Arc;

use anyhow::Context as _;

use super::Mode;
use crate::clock::SharedClock;
use crate::config::Settings;
use crate::engine::node::{Clocks, LastSeenFile, Membership, ProcessSettings, hear_redis};
use crate::ledger::{Deployment, SharedLedger};
use crate::node::NodeId;
use crate::redis::{Keys, Redis};

/// Joins as a node, once the clocks agree and the ledger has all records that the last-seen marks
/// of earlier processes report.
pub(crate) async fn join(
    settings: &Settings,
    ledger: &SharedLedger,
    clock: &SharedClock,
    deployment: &Deployment,
    redis: Option<&Redis>,
) -> anyhow::Result<(Arc<Clocks>, Arc<Membership>)> {
    let clocks = Clocks::compare(ledger, Arc::clone(clock), &settings.allocator).await?;
    if let Some(redis) = redis {
        let keys = Keys::new(&deployment.prefix);
        hear_redis(ledger, redis, &keys, deployment).await.context("comparing with redis")?;
    }
    let last_seen_file = LastSeenFile::within(&settings.data_dir, deployment.deployment_id);
    let (own, time) = (Arc::clone(ledger), Arc::clone(clock));
    let joining = Membership::join(own, time, last_seen_file, &settings.allocator);
    Ok((clocks, joining.await.context("joining as a node")?))
}

/// Agrees on the window of retries, or leaves again.
pub(crate) async fn agree_window(
    ledger: &SharedLedger,
    node: NodeId,
    bounds: &ProcessSettings,
    mode: Mode,
) -> anyhow::Result<()> {
    let window_ms = bounds.idempotency_window_ms();
    if let Err(differs) = ledger.agree_window(node, window_ms, mode == Mode::Serve).await {
        // It has done nothing yet that another node would have to take over.
        ledger.nodes().leave(node).await.context("leaving the ledger")?;
        return Err(differs.into());
    }
    Ok(())
}
