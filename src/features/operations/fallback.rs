//! `numerator fallback on|off`: has the database take the numbers, or Redis again. Writes the
//! operator's choice into the ledger; the services act on it.

use std::time::Duration;

use anyhow::bail;
use clap::{Args, ValueEnum};
use serde::Serialize;
use tokio::time::Instant;

use crate::backoff::Backoff;
use crate::config::{DurationText, Settings};
use crate::engine::reconciler::{Life, observe};
use crate::ledger::{Event, LedgerError, Owner, Partition, PartitionState, SharedLedger, Wanted};
use crate::terminal::output::{print, print_json};
use crate::terminal::session::{check_partition, clock, open_deployment, operator};
use crate::terminal::words;

/// First and longest wait between two checks of the partitions.
const POLL: (Duration, Duration) = (Duration::from_millis(20), Duration::from_millis(200));

/// Who should take the numbers.
#[derive(Clone, Debug, Args)]
pub struct FallbackArgs {
    /// `on`: the database; `off`: Redis, once it is healthy
    #[arg(value_enum)]
    pub switch: Switch,
    /// Only this partition
    #[arg(long)]
    pub partition: Option<u32>,
    /// Who wants it, for the record, beside the user of the operating system
    #[arg(long, value_name = "NAME")]
    pub user: Option<String>,
    /// Longest wait until the database owns the partitions
    #[arg(long, value_name = "DURATION", default_value = "10s")]
    pub patience: DurationText,
    /// Only print what would change
    #[arg(long)]
    pub dry_run: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// On or off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Switch {
    /// The database takes the numbers.
    On,
    /// Redis does, once it is healthy.
    Off,
}

/// The result.
#[derive(Debug, Serialize)]
struct FallbackAnswer {
    wanted: &'static str,
    dry_run: bool,
    /// Partitions whose wanted owner changes.
    changed: Vec<u32>,
    /// Whether a service runs to act on it; none if the ledger takes no heartbeats.
    service_runs: Option<bool>,
    partitions: Vec<FallbackPartition>,
    /// The next step, in a sentence.
    note: String,
}

/// The current state of a partition.
#[derive(Debug, Serialize)]
struct FallbackPartition {
    partition: u32,
    epoch: u64,
    state: &'static str,
    owner: &'static str,
}

/// Sets the wanted owner and waits until it owns the partitions.
///
/// # Errors
/// A ledger that cannot be reached; running services that do not hand over in time.
pub async fn run(settings: &Settings, args: &FallbackArgs) -> anyhow::Result<()> {
    let (ledger, deployment) = open_deployment(settings).await?;
    check_partition(&ledger, args.partition).await?;
    let asked = Asked { ledger: &ledger, args, never: deployment.gapless_partition() };
    if args.partition == Some(asked.never) {
        bail!("partition {}: its series are gapless; the database always owns it", asked.never);
    }
    let wanted = match args.switch {
        Switch::On => Wanted::Database,
        Switch::Off => Wanted::Auto,
    };
    let changed: Vec<Partition> =
        asked.rows().await?.into_iter().filter(|row| is_change(row, wanted)).collect();
    if !args.dry_run {
        for row in &changed {
            ledger.want(Some(row.partition), wanted).await?;
            ledger.events().record(&event(row, wanted, args.user.as_deref())).await?;
        }
    }
    let seen = observe(&ledger, settings.allocator.node_ttl).await?;
    // A one-shot command does not judge Redis, and hands nothing over.
    let is_seen = seen.of(Life::Alive).any(|node| node.sight.is_some());
    let service_runs = if is_seen { Some(true) } else { seen.untold.is_none().then_some(false) };
    let waits = args.switch == Switch::On && service_runs != Some(false) && !args.dry_run;
    let is_met = if waits { asked.wait().await? } else { true };
    let answer = FallbackAnswer {
        wanted: words::wanted(wanted),
        dry_run: args.dry_run,
        changed: changed.iter().map(|row| row.partition).collect(),
        service_runs,
        partitions: asked.rows().await?.iter().map(FallbackPartition::of).collect(),
        note: sentence(settings, args, service_runs),
    };
    if args.json {
        print_json(&answer)?;
    } else {
        print(answer.lines())?;
    }
    if !is_met {
        let patience = args.patience;
        bail!("not every partition is on the database after {patience}; `status` shows which");
    }
    Ok(())
}

/// The requested partitions.
struct Asked<'a> {
    ledger: &'a SharedLedger,
    args: &'a FallbackArgs,
    /// The one that Redis never owns.
    never: u32,
}

impl Asked<'_> {
    async fn rows(&self) -> Result<Vec<Partition>, LedgerError> {
        let mut rows = self.ledger.partitions().await?;
        let one = self.args.partition;
        rows.retain(|row| one.map_or(row.partition != self.never, |one| one == row.partition));
        Ok(rows)
    }

    /// Waits until the database owns the partitions; false if it does not in time.
    async fn wait(&self) -> Result<bool, LedgerError> {
        let deadline = Instant::now() + self.args.patience.0;
        let mut wait = Backoff::new(POLL.0, POLL.1);
        let is_there =
            |row: &Partition| row.owner == Owner::Database && row.state == PartitionState::Open;
        while !self.rows().await?.iter().all(is_there) {
            if Instant::now() >= deadline {
                return Ok(false);
            }
            wait.wait().await;
        }
        Ok(true)
    }
}

/// Whether a wanted owner changes anything. Requesting Redis also ends a loan.
fn is_change(row: &Partition, wanted: Wanted) -> bool {
    row.wanted != wanted || wanted == Wanted::Auto && row.is_lent
}

/// The event for a wanted owner: the stated user, and the user who ran the command.
fn event(row: &Partition, wanted: Wanted, user: Option<&str>) -> Event {
    let by = operator();
    Event {
        at_us: clock().now_us(),
        kind: "fallback-wanted".into(),
        partition: Some(row.partition),
        epoch: Some(row.epoch),
        node_id: None,
        detail: serde_json::json!({
            "wanted": words::wanted(wanted), "user": user.unwrap_or(&by), "by": by,
        }),
    }
}

fn sentence(settings: &Settings, args: &FallbackArgs, service_runs: Option<bool>) -> String {
    let after = DurationText(settings.allocator.return_after);
    match (args.switch, service_runs) {
        (_, _) if args.dry_run => "nothing was changed".into(),
        (Switch::Off, _) if settings.redis.is_none() => {
            "the database goes on: no redis is configured here (redis.url)".into()
        }
        (_, None) => "cannot tell whether a service runs: the ledger takes no heartbeats".into(),
        (_, Some(false)) => "no service runs: it takes effect with the next one".into(),
        (Switch::On, Some(true)) => "the database takes the numbers until `fallback off`".into(),
        (Switch::Off, Some(true)) => {
            format!("redis takes over once every node has seen it healthy for {after}")
        }
    }
}

impl FallbackPartition {
    fn of(row: &Partition) -> Self {
        FallbackPartition {
            partition: row.partition,
            epoch: row.epoch,
            state: words::state(row.state),
            owner: words::owner(&row.owner),
        }
    }
}

impl FallbackAnswer {
    /// The same for people.
    fn lines(&self) -> Vec<String> {
        let mut partitions = words::table(["partition", "epoch", "state", "owner"]);
        for row in &self.partitions {
            let (partition, epoch) = (row.partition.to_string(), row.epoch.to_string());
            partitions.add_row([partition, epoch, row.state.into(), row.owner.into()]);
        }
        let would = if self.dry_run { "would be changed" } else { "changed" };
        vec![
            format!("wanted {}, {} partitions {would}", self.wanted, self.changed.len()),
            partitions.to_string(),
            self.note.clone(),
        ]
    }
}
