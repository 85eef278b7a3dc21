//! `numerator status`: partitions, nodes, ceilings and totals from the ledger, and whether Redis
//! agrees. Reads only; a Redis that does not answer is shown, not an error.

mod answer;
mod page;
mod watch;

use std::io::{IsTerminal as _, stdout};
use std::time::Duration;

use clap::Args;

use super::output::{print_drawn, print_json};
use super::session::open_stores;
use crate::config::{DurationText, Settings};
use crate::ledger::{Owner, Partition};
use crate::node::NodeId;
use crate::reconciler::{Stores, observe, oldest};
use answer::{
    CeilingAnswer, NodeAnswer, OutboxAnswer, PartitionAnswer, RedisAnswer, ServerAnswer,
    StatusAnswer,
};

const EXAMPLES: &str = "Examples:
  numerator status
  numerator status --watch 5s
  numerator status --json";

/// How long to look, and how to print.
#[derive(Clone, Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct StatusArgs {
    /// Longest watch for a node's heartbeat before it is called silent; without it `node.ttl`
    #[arg(long, value_name = "DURATION")]
    pub patience: Option<DurationText>,
    /// How many counters with the least headroom below their ceiling to list
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(0..=1_000))]
    pub ceilings: u32,
    /// Show the page again and again until Ctrl-C, every 2s where no period is given
    #[arg(
        long,
        value_name = "PERIOD",
        num_args = 0..=1,
        default_missing_value = "2s",
        value_parser = watch::period,
        conflicts_with = "json"
    )]
    pub watch: Option<DurationText>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Prints the status, once or until Ctrl-C.
///
/// # Errors
/// A ledger that cannot be reached; while it is watched, only at the beginning.
pub async fn run(settings: &Settings, args: &StatusArgs) -> anyhow::Result<()> {
    let stores = open_stores(settings).await?;
    let outcome = match args.watch {
        Some(period) => watch::watch(settings, &stores, args, period.0).await,
        None => gather(settings, &stores, args).await.and_then(|status| tell(&status, args)),
    };
    stores.close().await;
    outcome
}

/// Prints it once.
fn tell(status: &StatusAnswer, args: &StatusArgs) -> anyhow::Result<()> {
    if args.json {
        print_json(status)?;
    } else {
        let with_colours = watch::with_colours(stdout().is_terminal());
        print_drawn(status.lines().iter().map(|line| line.show(with_colours)))?;
    }
    Ok(())
}

/// Looks at everything once.
async fn gather(
    settings: &Settings,
    stores: &Stores,
    args: &StatusArgs,
) -> anyhow::Result<StatusAnswer> {
    let patience = args.patience.map_or(settings.allocator.node_ttl, |patience| patience.0);
    let nodes = observe(&stores.ledger, patience).await?;
    let identities: Vec<NodeId> = nodes.iter().map(|seen| seen.node.node_id).collect();
    let mut partitions = Vec::new();
    let mut trouble = None;
    for row in stores.ledger.partitions().await? {
        let window = settings.allocator.idempotency_window;
        let redis = ask_redis(stores, &row, &identities, window, &mut trouble).await;
        partitions.push(PartitionAnswer::of(row, redis));
    }
    let held = stores.ledger.held_snowflakes().await?;
    let checkups = match &stores.redis {
        Some(redis) => redis.check_up().await,
        None => Vec::new(),
    };
    Ok(StatusAnswer {
        engine: stores.ledger.engine(),
        ledger_server: ServerAnswer::of_ledger(stores.ledger.check_up().await?),
        redis_servers: checkups.into_iter().map(ServerAnswer::of).collect(),
        partitions,
        nodes: nodes.into_iter().map(|seen| NodeAnswer::of(seen, &held)).collect(),
        ceilings: tightest(stores, args.ceilings).await?,
        totals: stores.ledger.sizes().await?,
    })
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
    window: Duration,
    trouble: &mut Option<String>,
) -> Option<RedisAnswer> {
    let redis = stores.redis.as_ref()?;
    let unknown = |trouble: String| RedisAnswer {
        agrees: None,
        trouble: Some(trouble),
        asking_ms: 0,
        outboxes: vec![],
    };
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
        // An age that is not known is left out; the length stands by itself.
        let age = oldest(stores, redis, row.partition, node).await.ok().flatten();
        let lag_ms = age.map(|age| u64::try_from(age.as_millis()).unwrap_or(u64::MAX));
        outboxes.push(OutboxAnswer { node_id: node.to_string(), entries, lag_ms });
    }
    let Owner::Redis { incarnation } = &row.owner else {
        return Some(RedisAnswer { agrees: None, trouble: None, asking_ms: 0, outboxes });
    };
    let asks = survey.owner.as_ref().map(|owner| owner.asks_for(stores.clock.now_us(), window));
    let asking_ms = u64::try_from(asks.unwrap_or_default().as_millis()).unwrap_or(u64::MAX);
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
    let agrees = Some(disagreement.is_none());
    Some(RedisAnswer { agrees, trouble: disagreement, asking_ms, outboxes })
}
