//! `numerator status`: partitions, owners, epochs, nodes and totals, read from the ledger alone.

use clap::Args;
use comfy_table::Table;
use comfy_table::presets;
use serde::Serialize;

use super::output::{print, print_json};
use super::session::open_ledger;
use crate::config::Settings;
use crate::ledger::{Closing, Node, Owner, Partition, PartitionState, Totals};

/// How to print.
#[derive(Clone, Debug, Args)]
pub struct StatusArgs {
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// What the ledger shows.
#[derive(Debug, Serialize)]
struct StatusAnswer {
    engine: &'static str,
    partitions: Vec<PartitionAnswer>,
    nodes: Vec<NodeAnswer>,
    totals: Totals,
}

/// One partition.
#[derive(Debug, Serialize)]
struct PartitionAnswer {
    partition: u32,
    epoch: u64,
    state: &'static str,
    owner: &'static str,
    /// Which data set of Redis it is.
    incarnation: Option<String>,
    /// How the epoch before was closed: `exact` or `ceiling`.
    last_closing: Option<&'static str>,
    /// Why the epoch began.
    cause: String,
}

/// One node that has not left.
#[derive(Debug, Serialize)]
struct NodeAnswer {
    node_id: String,
    label: String,
    version: String,
    /// Raised with every heartbeat; a node whose beat stands still is silent.
    beat: i64,
}

impl PartitionAnswer {
    fn of(partition: Partition) -> Self {
        let (owner, incarnation) = match partition.owner {
            Owner::None => ("none", None),
            Owner::Redis { incarnation } => ("redis", Some(incarnation)),
            Owner::Database => ("database", None),
        };
        PartitionAnswer {
            partition: partition.partition,
            epoch: partition.epoch,
            state: match partition.state {
                PartitionState::Open => "open",
                PartitionState::Recovering => "recovering",
                PartitionState::Opening => "opening",
                PartitionState::Held => "held",
            },
            owner,
            incarnation,
            last_closing: partition.last_closing.map(|closing| match closing {
                Closing::Exact => "exact",
                Closing::Ceiling => "ceiling",
            }),
            cause: partition.cause,
        }
    }
}

impl NodeAnswer {
    fn of(node: Node) -> Self {
        NodeAnswer {
            node_id: node.node_id.to_string(),
            label: node.label,
            version: node.version,
            beat: node.beat,
        }
    }
}

/// Prints the status.
///
/// # Errors
/// A ledger that cannot be reached.
pub async fn run(settings: &Settings, args: &StatusArgs) -> anyhow::Result<()> {
    let ledger = open_ledger(settings).await?;
    let status = StatusAnswer {
        engine: ledger.engine(),
        partitions: ledger.partitions().await?.into_iter().map(PartitionAnswer::of).collect(),
        nodes: ledger.nodes().await?.into_iter().map(NodeAnswer::of).collect(),
        totals: ledger.totals().await?,
    };
    if args.json {
        print_json(&status)?;
    } else {
        print(status.lines())?;
    }
    Ok(())
}

impl StatusAnswer {
    /// The same for people.
    fn lines(&self) -> Vec<String> {
        let Totals { journal, gaps, collisions, rejected } = self.totals;
        let mut partitions = Table::new();
        partitions.load_style(presets::NOTHING);
        partitions.set_header(["partition", "epoch", "state", "owner", "closed before", "cause"]);
        for row in &self.partitions {
            partitions.add_row([
                row.partition.to_string(),
                row.epoch.to_string(),
                row.state.into(),
                row.owner.into(),
                row.last_closing.unwrap_or("-").into(),
                row.cause.clone(),
            ]);
        }
        let mut nodes = Table::new();
        nodes.load_style(presets::NOTHING);
        nodes.set_header(["node", "label", "version", "beat"]);
        for row in &self.nodes {
            let beat = row.beat.to_string();
            nodes.add_row([row.node_id.clone(), row.label.clone(), row.version.clone(), beat]);
        }
        vec![
            format!("ledger {}", self.engine),
            format!("journal {journal}  gaps {gaps}  collisions {collisions}  rejected {rejected}"),
            partitions.to_string(),
            nodes.to_string(),
        ]
    }
}
