//! `numerator drain`: ensures that no outbox holds records that the journal does not have, before
//! Redis is removed. Exits 0 only if that is so, and no silent node is left unadopted.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::{Context as _, bail};
use clap::Args;
use serde::Serialize;
use tokio::time::Instant;

use crate::backoff::Backoff;
use crate::config::{DurationText, Settings};
use crate::engine::reconciler::{Backlog, Reconciler, Stores, backlogs, sweep_all};
use crate::ledger::{Adopted, Owner};
use crate::node::NodeId;
use crate::terminal::output::{print, print_json};
use crate::terminal::session::{note_act, open_own_stores, with_service};
use crate::terminal::words;

/// First and longest wait between two checks of the outboxes.
const POLL: (Duration, Duration) = (Duration::from_millis(50), Duration::from_millis(500));

/// What to do, and for how long.
#[derive(Clone, Debug, Args)]
pub struct DrainArgs {
    /// Adopt what silent nodes left; without it, nothing is written
    #[arg(long)]
    pub apply: bool,
    /// Longest wait for silent nodes to be adopted, and then for live nodes to journal theirs
    #[arg(long, value_name = "DURATION", default_value = "10s")]
    pub patience: DurationText,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// The content of the outboxes.
#[derive(Debug, Default, Serialize)]
struct DrainAnswer {
    applied: bool,
    /// Whether no outbox holds records that the journal does not have, and every silent node is
    /// adopted: the entries of a node whose outbox is gone are in no journal.
    drained: bool,
    /// Silent nodes, and the outcome for their entries.
    adoption: AdoptionAnswer,
    /// Outboxes that are not empty.
    outboxes: Vec<Backlog>,
    /// Confirmed reservations that were journaled.
    reservations_journaled: u64,
    /// Confirmed reservations that are not in the journal: a process that serves, or `--apply`, has
    /// them journaled.
    reservations_confirmed: u64,
    /// Partitions that Redis still owns: their outboxes fill again while services run.
    owned_by_redis: BTreeSet<u32>,
}

/// The result of an adoption.
#[derive(Debug, Default, Serialize)]
pub(crate) struct AdoptionAnswer {
    pub(crate) nodes: Vec<String>,
    /// Silent nodes that could not be adopted in time.
    pub(crate) rest: usize,
    /// Rows written.
    pub(crate) written: u64,
    /// Entries that the journal knew already.
    pub(crate) known: u64,
    /// Entries that were never handed out.
    pub(crate) discarded: u64,
    /// Duplicates. Must be 0.
    pub(crate) collided: u64,
}

impl AdoptionAnswer {
    /// Adopts, as a node, the entries of silent nodes.
    pub(crate) async fn adopt(
        service: &crate::startup::Service,
        partition: Option<u32>,
        patience: Duration,
    ) -> anyhow::Result<Self> {
        let done = Reconciler::adopt_silent(&service.context, partition, patience).await?;
        let Adopted { written, known, discarded, collided } = done.sum;
        let nodes = done.nodes.iter().map(NodeId::to_string).collect();
        Ok(AdoptionAnswer { nodes, rest: done.rest, written, known, discarded, collided })
    }

    /// The same for people.
    pub(crate) fn line(&self) -> String {
        let AdoptionAnswer { nodes, rest, written, known, discarded, collided } = self;
        format!(
            "silent nodes {}, not adopted {rest}; rows written {written}, known {known}, \
             discarded {discarded}, duplicates {collided}",
            nodes.len()
        )
    }
}

/// Drains.
///
/// # Errors
/// A ledger or Redis that cannot be reached; an outbox that still holds unjournaled entries.
pub async fn run(settings: &Settings, args: &DrainArgs) -> anyhow::Result<()> {
    let mut answer = DrainAnswer { applied: args.apply, ..DrainAnswer::default() };
    let patience = args.patience.0;
    if args.apply {
        with_service(settings, async |service| {
            let done = adopt_and_sweep(service, patience, &mut answer).await;
            if let Err(error) = &done {
                note_act(&service.ledger, "drained", answer.detail(Some(error))).await;
            }
            done
        })
        .await?;
    }
    let stores = open_own_stores(settings).await?;
    let looked = wait(&stores, &mut answer, if args.apply { patience } else { Duration::ZERO });
    let looked = looked.await;
    if args.apply {
        note_act(&stores.ledger, "drained", answer.detail(looked.as_ref().err())).await;
    }
    stores.close().await;
    looked.context("the outboxes cannot be read")?;
    if args.json {
        print_json(&answer)?;
    } else {
        print(answer.lines())?;
    }
    let rest = answer.adoption.rest;
    if rest > 0 {
        bail!(
            "{rest} silent nodes are not adopted: their outboxes may be lost with the data of \
             Redis, and numbers with them; start a node, which adopts them and closes their \
             epochs, then repeat this with a longer --patience"
        );
    }
    if !answer.drained {
        bail!("outboxes hold what is not journaled; see `drain` in docs/runbook.md");
    }
    Ok(())
}

/// Adopts what silent nodes left, and journals what is confirmed; what was adopted is in the answer
/// even where the second fails.
async fn adopt_and_sweep(
    service: &crate::startup::Service,
    patience: Duration,
    answer: &mut DrainAnswer,
) -> anyhow::Result<()> {
    answer.adoption = AdoptionAnswer::adopt(service, None, patience).await?;
    let journaled = sweep_all(&service.context, Instant::now() + patience).await;
    answer.reservations_journaled = journaled.context("reservations are not swept")?;
    Ok(())
}

/// Checks all outboxes until they hold nothing that the journal lacks.
async fn wait(stores: &Stores, answer: &mut DrainAnswer, patience: Duration) -> anyhow::Result<()> {
    let deadline = Instant::now() + patience;
    let mut wait = Backoff::new(POLL.0, POLL.1);
    loop {
        poll(stores, answer).await?;
        let is_journaled = answer.outboxes.iter().all(|outbox| outbox.unjournaled == 0);
        answer.drained = is_journaled && answer.adoption.rest == 0;
        if is_journaled || Instant::now() >= deadline {
            return Ok(());
        }
        wait.wait().await;
    }
}

async fn poll(stores: &Stores, answer: &mut DrainAnswer) -> anyhow::Result<()> {
    answer.outboxes.clear();
    answer.owned_by_redis.clear();
    answer.reservations_confirmed = stores.ledger.reservations().counts().await?.confirmed;
    let nodes: Vec<NodeId> =
        stores.ledger.nodes().list().await?.into_iter().map(|node| node.node_id).collect();
    for row in stores.ledger.partitions().await? {
        if matches!(row.owner, Owner::Redis { .. }) {
            answer.owned_by_redis.insert(row.partition);
        }
        let Some(redis) = &stores.redis else { continue };
        answer.outboxes.extend(backlogs(stores, redis, row.partition, &nodes).await?);
    }
    if stores.redis.is_none() && !answer.owned_by_redis.is_empty() {
        bail!("redis owns partitions {:?}; set redis.url", answer.owned_by_redis);
    }
    if stores.redis.is_none() && answer.adoption.rest > 0 {
        bail!(
            "{} nodes are not adopted: look longer with --patience; set redis.url where they \
             worked with redis, for they may have left outboxes there",
            answer.adoption.rest
        );
    }
    Ok(())
}

impl DrainAnswer {
    /// The same as an event.
    fn detail(&self, failed: Option<&anyhow::Error>) -> serde_json::Value {
        let unjournaled: u64 = self.outboxes.iter().map(|outbox| outbox.unjournaled).sum();
        serde_json::json!({
            "drained": self.drained, "adoption": self.adoption, "unjournaled": unjournaled,
            "reservations_journaled": self.reservations_journaled,
            "failed": failed.map(|error| format!("{error:#}")),
        })
    }

    /// The same for people.
    fn lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        if self.applied {
            lines.push(self.adoption.line());
        }
        if self.applied || self.reservations_confirmed > 0 {
            lines.push(format!(
                "confirmed reservations journaled {}, not in the journal {}",
                self.reservations_journaled, self.reservations_confirmed
            ));
        }
        if !self.outboxes.is_empty() {
            let mut table = words::table(["partition", "node", "entries", "unjournaled"]);
            for row in &self.outboxes {
                let Backlog { partition, node_id, entries, unjournaled, .. } = row;
                let (partition, entries) = (partition.to_string(), entries.to_string());
                table.add_row([partition, node_id.clone(), entries, unjournaled.to_string()]);
            }
            lines.push(table.to_string());
        }
        lines.push(match (self.drained, self.owned_by_redis.is_empty()) {
            (true, true) => "drained: nothing is left in Redis".into(),
            (true, false) => "drained for now: Redis owns partitions, and services that run fill \
                              the outboxes again; `fallback on` first"
                .into(),
            (false, _) => "NOT DRAINED".into(),
        });
        lines
    }
}
