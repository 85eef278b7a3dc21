//! `numerator status`: partitions, nodes, ceilings and totals from the ledger, and whether Redis
//! agrees. Reads only; a Redis that does not answer is told, not an error.

use std::collections::BTreeMap;

use clap::Args;
use serde::Serialize;

use super::output::{print, print_json};
use super::session::open_stores;
use super::words;
use crate::config::{DurationText, Settings};
use crate::ledger::{Counter, HeldNumber, Owner, Partition, Sight, Totals};
use crate::node::NodeId;
use crate::reconciler::{Observed, Stores, observe, oldest};

/// How long to look, and how to print.
#[derive(Clone, Debug, Args)]
pub struct StatusArgs {
    /// Longest watch for a node's heartbeat before it is called silent; without it `node.ttl`
    #[arg(long, value_name = "DURATION")]
    pub patience: Option<DurationText>,
    /// How many counters with the least room below their ceiling to list
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(0..=1_000))]
    pub ceilings: u32,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// What the stores show.
#[derive(Debug, Serialize)]
struct StatusAnswer {
    engine: &'static str,
    partitions: Vec<PartitionAnswer>,
    nodes: Vec<NodeAnswer>,
    /// Counters of Redis with the least room: how far issuing gets while the ledger is away.
    ceilings: Vec<CeilingAnswer>,
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
    /// Who should own it by an operator's word: `auto` or `database`.
    wanted: &'static str,
    /// How the epoch before was closed: `exact` or `ceiling`.
    last_closing: Option<&'static str>,
    /// The last epoch closed at the ceiling; 0: none.
    last_ceiling_epoch: u64,
    /// Why the epoch began.
    cause: String,
    /// When it came into this state (RFC 3339).
    changed_at: String,
    /// What Redis shows; absent where none is configured.
    redis: Option<RedisAnswer>,
}

/// One partition in Redis.
#[derive(Debug, Serialize)]
struct RedisAnswer {
    /// Whether the owner record is the one that the ledger names; none where the ledger does not
    /// name Redis as the owner, or Redis does not answer.
    agrees: Option<bool>,
    /// Why it does not, or why nothing is known.
    trouble: Option<String>,
    /// Outboxes that are not empty: the journal's lag.
    outboxes: Vec<OutboxAnswer>,
}

/// One outbox.
#[derive(Debug, Serialize)]
struct OutboxAnswer {
    node_id: String,
    /// Entries, one per flight; a few that are journaled wait to be trimmed.
    entries: u64,
    /// Age of the oldest entry.
    lag_ms: Option<u64>,
}

/// One node that has not left.
#[derive(Debug, Serialize)]
struct NodeAnswer {
    node_id: String,
    label: String,
    version: String,
    /// Raised with every heartbeat.
    beat: i64,
    /// Whether it was seen to rise.
    alive: bool,
    started_at: String,
    /// What its ids of `{SNOWFLAKE}` show; none where it has drawn no id yet.
    node_number: Option<u16>,
    /// Partitions in which it may have left an outbox.
    partitions: Vec<u32>,
    /// The data sets of Redis that it sees, with the partitions that it sees there; none for a
    /// one-shot command.
    sight: Option<Sight>,
}

/// One counter.
#[derive(Debug, Serialize)]
struct CeilingAnswer {
    counter_id: i64,
    counter_key: String,
    partition: u32,
    taken: i64,
    ceiling: i64,
    /// Values left below the ceiling.
    room: u64,
}

impl PartitionAnswer {
    fn of(partition: Partition, redis: Option<RedisAnswer>) -> Self {
        PartitionAnswer {
            partition: partition.partition,
            epoch: partition.epoch,
            state: words::state(partition.state),
            owner: words::owner(&partition.owner),
            incarnation: match partition.owner {
                Owner::Redis { incarnation } => Some(incarnation),
                Owner::None | Owner::Database => None,
            },
            wanted: words::wanted(partition.wanted),
            last_closing: partition.last_closing.map(words::closing),
            last_ceiling_epoch: partition.last_ceiling_epoch,
            cause: partition.cause,
            changed_at: words::moment(partition.changed_at_us),
            redis,
        }
    }
}

impl NodeAnswer {
    fn of(Observed { node, is_beating }: Observed, held: &[HeldNumber]) -> Self {
        let held = held.iter().find(|held| held.holder == node.node_id);
        NodeAnswer {
            node_number: held.map(|held| held.node_number),
            node_id: node.node_id.to_string(),
            label: node.label,
            version: node.version,
            beat: node.beat,
            alive: is_beating,
            started_at: words::moment(node.started_at_us),
            partitions: node.partitions,
            sight: node.sight,
        }
    }
}

impl CeilingAnswer {
    fn of(counter: Counter) -> Self {
        CeilingAnswer {
            counter_id: counter.counter_id,
            partition: counter.partition,
            taken: counter.taken,
            ceiling: counter.ceiling,
            room: counter.room(),
            counter_key: counter.key,
        }
    }
}

/// Prints the status.
///
/// # Errors
/// A ledger that cannot be reached.
pub async fn run(settings: &Settings, args: &StatusArgs) -> anyhow::Result<()> {
    let stores = open_stores(settings).await?;
    let patience = args.patience.map_or(settings.allocator.node_ttl, |patience| patience.0);
    let nodes = observe(&stores.ledger, patience).await?;
    let identities: Vec<NodeId> = nodes.iter().map(|seen| seen.node.node_id).collect();
    let mut partitions = Vec::new();
    let mut trouble = None;
    for row in stores.ledger.partitions().await? {
        let redis = ask_redis(&stores, &row, &identities, &mut trouble).await;
        partitions.push(PartitionAnswer::of(row, redis));
    }
    let held = stores.ledger.held_snowflakes().await?;
    let status = StatusAnswer {
        engine: stores.ledger.engine(),
        partitions,
        nodes: nodes.into_iter().map(|seen| NodeAnswer::of(seen, &held)).collect(),
        ceilings: tightest(&stores, args.ceilings).await?,
        totals: stores.ledger.totals().await?,
    };
    stores.close().await;
    if args.json {
        print_json(&status)?;
    } else {
        print(status.lines())?;
    }
    Ok(())
}

async fn tightest(stores: &Stores, limit: u32) -> anyhow::Result<Vec<CeilingAnswer>> {
    let counters = stores.ledger.tightest(limit).await?;
    Ok(counters.into_iter().map(CeilingAnswer::of).collect())
}

/// What Redis shows of a partition. A server that did not answer once is not asked again: each
/// question would take its whole time-out.
async fn ask_redis(
    stores: &Stores,
    row: &Partition,
    nodes: &[NodeId],
    trouble: &mut Option<String>,
) -> Option<RedisAnswer> {
    let redis = stores.redis.as_ref()?;
    let unknown =
        |trouble: String| RedisAnswer { agrees: None, trouble: Some(trouble), outboxes: vec![] };
    if let Some(trouble) = trouble {
        return Some(unknown(trouble.clone()));
    }
    let (survey, lengths) = match stores.survey(redis, row.partition, nodes).await {
        Ok(seen) => seen,
        Err(error) => {
            let why = format!("redis does not answer: {error}");
            *trouble = Some(why.clone());
            return Some(unknown(why));
        }
    };
    let mut outboxes = Vec::new();
    for (node, entries) in lengths {
        // An age that cannot be told is left out; the length stands by itself.
        let age = oldest(stores, redis, row.partition, node).await.ok().flatten();
        let lag_ms = age.map(|age| u64::try_from(age.as_millis()).unwrap_or(u64::MAX));
        outboxes.push(OutboxAnswer { node_id: node.to_string(), entries, lag_ms });
    }
    let Owner::Redis { incarnation } = &row.owner else {
        return Some(RedisAnswer { agrees: None, trouble: None, outboxes });
    };
    let disagreement = match &survey.owner {
        _ if !survey.is_master => Some("the server is not a master".to_owned()),
        _ if survey.incarnation != *incarnation => {
            Some(format!("the server shows the data set {}", survey.incarnation))
        }
        None => Some("the owner record is missing".to_owned()),
        Some(owner) if owner.epoch != row.epoch => {
            Some(format!("the owner record shows epoch {}", owner.epoch))
        }
        Some(owner) if owner.incarnation != *incarnation => {
            Some(format!("the owner record names the data set {}", owner.incarnation))
        }
        Some(_) => None,
    };
    Some(RedisAnswer { agrees: Some(disagreement.is_none()), trouble: disagreement, outboxes })
}

impl StatusAnswer {
    /// The same for people.
    fn lines(&self) -> Vec<String> {
        let Totals { journal, revisions, gaps, collisions, rejected } = self.totals;
        let mut lines = vec![
            format!("ledger {}", self.engine),
            format!(
                "journal {journal}  revisions {revisions}  gaps {gaps}  collisions {collisions}  \
                 rejected {rejected}"
            ),
        ];
        let header =
            ["partition", "epoch", "state", "owner", "wanted", "closed before", "redis", "cause"];
        let mut partitions = words::table(header);
        for row in &self.partitions {
            partitions.add_row([
                row.partition.to_string(),
                row.epoch.to_string(),
                row.state.into(),
                row.owner.into(),
                row.wanted.into(),
                row.last_closing.unwrap_or("-").into(),
                row.redis.as_ref().map_or("-", RedisAnswer::word).into(),
                row.cause.clone(),
            ]);
        }
        lines.push(partitions.to_string());
        lines.extend(self.troubles());
        let header = ["node", "label", "version", "beat", "state", "number", "outboxes"];
        let mut nodes = words::table(header);
        let outboxes = self.outboxes();
        for row in &self.nodes {
            nodes.add_row([
                row.node_id.clone(),
                row.label.clone(),
                row.version.clone(),
                row.beat.to_string(),
                if row.alive { "alive" } else { "silent" }.into(),
                row.node_number.map_or_else(|| "-".into(), |number| number.to_string()),
                outboxes.get(row.node_id.as_str()).cloned().unwrap_or_default(),
            ]);
        }
        lines.push(nodes.to_string());
        if !self.ceilings.is_empty() {
            let mut ceilings = words::table(["counter", "key", "taken", "ceiling", "room"]);
            for row in &self.ceilings {
                ceilings.add_row([
                    row.counter_id.to_string(),
                    row.counter_key.clone(),
                    row.taken.to_string(),
                    row.ceiling.to_string(),
                    row.room.to_string(),
                ]);
            }
            lines.push(ceilings.to_string());
        }
        lines
    }

    /// What Redis is in trouble with, each sentence once, with its partitions.
    fn troubles(&self) -> Vec<String> {
        let mut troubles: BTreeMap<&str, Vec<String>> = BTreeMap::new();
        for row in &self.partitions {
            if let Some(trouble) = row.redis.as_ref().and_then(|redis| redis.trouble.as_deref()) {
                troubles.entry(trouble).or_default().push(row.partition.to_string());
            }
        }
        let line = |(trouble, partitions): (&str, Vec<String>)| {
            format!("partitions {}: {trouble}", partitions.join(", "))
        };
        troubles.into_iter().map(line).collect()
    }

    /// Per node what lies in its outboxes: entries and partition.
    fn outboxes(&self) -> BTreeMap<&str, String> {
        let mut texts: BTreeMap<&str, String> = BTreeMap::new();
        for row in &self.partitions {
            for outbox in row.redis.iter().flat_map(|redis| &redis.outboxes) {
                let text = texts.entry(&outbox.node_id).or_default();
                let gap = if text.is_empty() { "" } else { ", " };
                text.push_str(&format!("{gap}{} in {}", outbox.entries, row.partition));
            }
        }
        texts
    }
}

impl RedisAnswer {
    fn word(&self) -> &'static str {
        match self.agrees {
            Some(true) => "agrees",
            Some(false) => "differs",
            None if self.trouble.is_some() => "unknown",
            None => "-",
        }
    }
}
