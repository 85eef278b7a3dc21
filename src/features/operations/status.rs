//! `numerator status`: partitions, nodes, ceilings and totals from the ledger, and whether Redis
//! agrees. A Redis that does not answer is shown, not an error. Rewrites one heartbeat unchanged,
//! and only if one does not move: to see whether the ledger takes any.

mod answer;
mod page;
mod reservations;
mod verdict;
mod waits;
mod watch;

use std::io::{IsTerminal as _, stdout};
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;

use crate::config::{DurationText, Settings};
use crate::engine::reconciler::{Stores, observe, oldest};
use crate::ledger::{LedgerError, Owner, Partition};
use crate::node::NodeId;
use crate::terminal::output::{complain, print_drawn, print_json};
use crate::terminal::session::open_stores;
use answer::{
    CeilingAnswer, NodeAnswer, OutboxAnswer, PartitionAnswer, RedisAnswer, ServerAnswer,
    StatusAnswer,
};
use reservations::ReservationsAnswer;
use verdict::{Judged, Verdict};

const EXAMPLES: &str = "Exit codes: 0 all is well (hazards are only told), 1 something is to be \
done: the first line says what, 2 cannot tell: a store does not answer, or takes no writes

Examples:
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

/// Prints the status, once or until Ctrl-C. The exit code is the verdict.
///
/// # Errors
/// Output that cannot be written. An unreachable ledger is a status: the state is not known.
pub async fn run(settings: &Settings, args: &StatusArgs) -> anyhow::Result<ExitCode> {
    let stores = match open_stores(settings).await {
        Ok(stores) => stores,
        Err(error) => return tell_nothing(&error, args),
    };
    let outcome = match args.watch {
        Some(period) => {
            watch::watch(settings, &stores, args, period.0).await.map(|()| ExitCode::SUCCESS)
        }
        None => match gather(settings, &stores, args).await {
            Ok(status) => tell(&status, args),
            Err(error) => tell_nothing(&error, args),
        },
    };
    stores.close().await;
    outcome
}

/// Prints it once.
fn tell(status: &StatusAnswer, args: &StatusArgs) -> anyhow::Result<ExitCode> {
    if args.json {
        print_json(status)?;
    } else {
        let with_colours = watch::with_colours(stdout().is_terminal());
        print_drawn(status.lines().iter().map(|line| line.show(with_colours)))?;
    }
    Ok(status.judged.verdict.exit_code())
}

/// Reports that nothing could be checked, and why.
fn tell_nothing(error: &anyhow::Error, args: &StatusArgs) -> anyhow::Result<ExitCode> {
    if args.json {
        print_json(&Judged::nothing(error))?;
    }
    complain(error, args.json);
    Ok(Verdict::CannotTell.exit_code())
}

/// Reads the whole state once.
async fn gather(
    settings: &Settings,
    stores: &Stores,
    args: &StatusArgs,
) -> anyhow::Result<StatusAnswer> {
    let patience = args.patience.map_or(settings.allocator.node_ttl, |patience| patience.0);
    let seen = observe(&stores.ledger, patience).await?;
    let identities: Vec<NodeId> = seen.nodes.iter().map(|seen| seen.node.node_id).collect();
    let (mut partitions, mut trouble, mut unread) = (Vec::new(), None, Vec::new());
    for row in stores.ledger.partitions().await? {
        let window = settings.allocator.idempotency_window;
        let redis = ask_redis(stores, &row, &identities, window, &mut trouble).await;
        partitions.push(PartitionAnswer::of(row, redis));
    }
    waits::note(&mut partitions, &seen.nodes);
    let ledger = &stores.ledger;
    let mut unless_read = |what: &str, error: LedgerError| unread.push(format!("{what}: {error}"));
    let held = ledger.snowflakes().held().await;
    let held = held.map_err(|error| unless_read("the node numbers", error)).unwrap_or_default();
    let ledger_server = match ledger.check_up().await {
        Ok(checkup) => ServerAnswer::of_ledger(checkup),
        Err(error) => ServerAnswer::unread(&error),
    };
    let ceilings = ledger.counters().tightest(args.ceilings).await;
    let ceilings = ceilings.map_err(|error| unless_read("the ceilings", error)).unwrap_or_default();
    let told = ledger.tokens().untold().await.map_err(|error| unless_read("the tokens", error));
    let totals =
        ledger.audits().sizes().await.map_err(|error| unless_read("the totals", error)).ok();
    let live = ledger.reservations().counts().await;
    let live = live.map_err(|error| unless_read("the reservations", error)).ok();
    let checkups = match &stores.redis {
        Some(redis) => redis.check_up().await,
        None => Vec::new(),
    };
    let mut status = StatusAnswer {
        judged: Judged::default(),
        engine: ledger.engine(),
        ledger_server,
        redis_servers: checkups.into_iter().map(ServerAnswer::of).collect(),
        partitions,
        nodes: seen.nodes.into_iter().map(|seen| NodeAnswer::of(seen, &held)).collect(),
        untold: seen.untold,
        unread,
        untold_tokens: told.map(|told| told.untold).unwrap_or_default(),
        ceilings: ceilings.into_iter().map(CeilingAnswer::of).collect(),
        totals,
        reservations: live.map(ReservationsAnswer::of),
    };
    status.judged = status.judge();
    Ok(status)
}

/// The state of a partition in Redis. A server that did not answer once is not queried again: each
/// query would take its whole time-out.
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
        data_set: None,
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
            let why = format!("redis does not answer: {}", error.cause());
            *trouble = Some(why.clone());
            return Some(unknown(why));
        }
    };
    let mut outboxes = Vec::new();
    for (node, entries) in lengths {
        // An unknown age is left out; the length is shown alone.
        let age = oldest(stores, redis, row.partition, node).await.ok().flatten();
        let lag_ms = age.map(|age| u64::try_from(age.as_millis()).unwrap_or(u64::MAX));
        outboxes.push(OutboxAnswer { node_id: node.to_string(), entries, lag_ms });
    }
    let data_set = Some(survey.incarnation.clone());
    let Owner::Redis { incarnation } = &row.owner else {
        return Some(RedisAnswer { agrees: None, data_set, trouble: None, asking_ms: 0, outboxes });
    };
    let asks =
        survey.owner.as_ref().map(|owner| owner.records.asks_for(stores.clock.now_us(), window));
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
    Some(RedisAnswer { agrees, data_set, trouble: disagreement, asking_ms, outboxes })
}
