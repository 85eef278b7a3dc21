//! `loadtest nemesis`: random faults under load, and whether every promise holds.
//!
//! One step at a time: a quiet period, one fault or two that overlap, and the wait until everything
//! is in order again. The seed fixes the faults and their order; what the load does between them is
//! not reproducible.

mod accounts;
mod archiver;
mod asking;
mod beside;
mod breaches;
mod check;
mod faults;
mod file;
mod gaps;
mod holds;
mod journal;
mod kinds;
mod ledger;
mod life;
mod load;
mod operators;
mod orders;
mod plan;
mod progress;
mod report;
mod reservers;
mod transactions;
mod turn;
mod voiders;
mod world;

use std::io::{self, Write as _};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use numerator::clock::{Clock as _, SystemClock};
use tokio::time::{Instant, sleep};

use crate::{WRONG_USAGE, say};
use beside::Beside;
use breaches::Breaches;
use holds::Told;
use kinds::{Kind, Mark, kinds_of};
use ledger::{Engine, Stores};
use load::{Load, Seen};
use plan::{NODES, Plan, Step};
use progress::Progress;
use report::Report;
use turn::Turn;
use world::World;

/// Lines of a node's log that are shown when it does not recover.
const LOG_LINES: usize = 80;

/// How long and how hard.
#[derive(Clone, Debug, Args)]
pub(crate) struct NemesisArgs {
    /// How long faults are injected, in seconds; the checks come after that
    #[arg(long, default_value_t = 60)]
    seconds: u64,
    /// What keeps the ledger
    #[arg(long, value_enum, default_value = "postgres")]
    ledger: Engine,
    /// The ledger alone takes the numbers
    #[arg(long)]
    without_redis: bool,
    /// Ends after so many steps, if the time allows them
    #[arg(long)]
    steps: Option<usize>,
    /// What the sequence of faults follows from; drawn and printed without it
    #[arg(long)]
    seed: Option<u64>,
    /// Only faults whose name holds this text; may be given several times
    #[arg(long, value_name = "TEXT")]
    only: Vec<String>,
    /// Callers at once
    #[arg(long, default_value_t = 24, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    connections: u32,
    /// Old rows of the journal move to files meanwhile
    #[arg(long)]
    archive: bool,
    /// Most requests in a second, of all callers together
    #[arg(long, default_value_t = 2_000, value_parser = clap::value_parser!(u32).range(1..))]
    rate: u32,
}

/// Result of one step.
struct Outcome {
    step: Step,
    /// By the clocks of the nodes.
    injected_at_us: i64,
    /// Longest time in which a series had no number from any node.
    stall: Duration,
    /// From the injection until servers and links were right again.
    lasted: Duration,
    /// From the injection until everything was in order again.
    took: Duration,
    /// How often callers were refused meanwhile.
    refused: u64,
}

/// Runs the drill and prints its report.
pub(crate) fn run(args: &NemesisArgs) -> ExitCode {
    let seed = args.seed.unwrap_or_else(|| fastrand::u64(..));
    let stores = Stores { ledger: args.ledger, has_redis: !args.without_redis };
    let Some(plan) = Plan::new(seed, &args.only, stores) else {
        let names: Vec<_> = kinds_of(stores).map(Kind::name).collect();
        say(&format!("--only: there are the faults {}", names.join(", ")));
        return ExitCode::from(WRONG_USAGE);
    };
    let runtime = tokio::runtime::Runtime::new().expect("threads for the runtime");
    let report = runtime.block_on(drill(args, seed, plan, stores));
    let _ = write!(io::stdout(), "{report}");
    if report.breaches.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

async fn drill(args: &NemesisArgs, seed: u64, plan: Plan, stores: Stores) -> Report {
    say(&format!("seed {seed}: starting {NODES} nodes on {stores}"));
    let turn = match args.archive {
        // The archiver, which has no clock of its own, moves what is old enough.
        true => Turn::of_another_day(),
        false => Turn::after(Duration::from_secs(args.seconds) / 2),
    };
    let mut world = World::start(stores, turn);
    let progress = Arc::new(Progress::new());
    let (addresses, connections) = (world.addresses(), args.connections);
    let pace = (connections, args.rate);
    let (day, is_archived) = (world.turn.day.clone(), args.archive);
    let load = Load::start(&addresses, &progress, seed, pace, (&day, is_archived));
    let beside = Beside::start(&addresses, &progress, seed, &world.surroundings());
    let archiving = args.archive.then(|| tokio::spawn(world.archiver().run()));
    let mut breaches = Breaches::default();
    if let Err(disorder) = world.come_to_rest(&progress).await {
        breaches.add("does not begin to issue", disorder);
    }

    let deadline = Instant::now() + Duration::from_secs(args.seconds);
    let mut outcomes: Vec<Outcome> = Vec::new();
    for step in plan.take(args.steps.unwrap_or(usize::MAX)) {
        if Instant::now() >= deadline || !breaches.is_empty() {
            break;
        }
        let (outcome, rested) = carry_out(&mut world, &progress, step).await;
        let numbers = progress.noted().numbers;
        say(&format!("{:4}. {}", outcomes.len() + 1, report::line(&outcome, numbers)));
        if let Err(disorder) = rested {
            for node in 0..NODES {
                say(&format!("--- node {node}\n{}", world.log_tail(node, LOG_LINES)));
            }
            breaches.add("does not recover", format!("{}: {disorder}", outcome.step));
        }
        outcomes.push(outcome);
    }

    if let Some(archiving) = archiving {
        archiving.abort();
        let _ = archiving.await;
        match world.archiver().once().await {
            Ok(rows) => say(&format!("the last archiver moved {rows} rows")),
            Err(error) => breaches.add("the archive does not end", error.to_string()),
        }
    }
    say("ending the load");
    let (seen, told) = tokio::join!(load.finish(), beside.finish());
    if let Err(left) = world.reservations_end().await {
        breaches.add("reservations do not end", left);
    }
    conclude(args, seed, world, &progress, (seen, told), outcomes, breaches)
}

/// Injects a step's faults, ends them, and waits until everything is in order again.
async fn carry_out(
    world: &mut World,
    progress: &Progress,
    step: Step,
) -> (Outcome, Result<(), String>) {
    sleep(step.calm).await;
    // No process reports a void again that the ledger forgets: an operator decides then. So half of
    // the ledgers that go back do it without one.
    let is_agreed = step.all(Mark::Agreed);
    let is_quiet = is_agreed && world.agreed_steps.is_multiple_of(2);
    world.agreed_steps += u32::from(is_agreed);
    if is_quiet {
        progress.quiet().await;
    }
    let refused_before = progress.noted().refused();
    let released = |world: &World| world.releases - world.releases_for_dead;
    let (releases_before, released_before) = (world.releases, released(world));
    progress.reset();
    let (started, injected_at_us) = (Instant::now(), SystemClock.now_us() + world.turn.shift_us());
    let mut open: Vec<(Instant, plan::Fault)> = Vec::new();
    for (i, fault) in step.faults.iter().enumerate() {
        if i > 0 {
            sleep(step.offset).await;
        }
        world.inject(fault).await;
        open.push((Instant::now() + fault.hold, *fault));
    }
    open.sort_by_key(|(until, _)| *until);
    for (until, fault) in open {
        tokio::time::sleep_until(until).await;
        world.heal(&fault);
    }
    let lasted = started.elapsed();
    let mut rested = world.come_to_rest(progress).await;
    let was_released = world.releases > releases_before;
    progress.stir();
    if rested.is_ok() && released(world) > released_before && is_quiet {
        rested = Err("it did not go on by itself though all nodes were alive".into());
    }
    if rested.is_ok() && !was_released && step.any(Mark::Held) {
        rested = Err("the ledger that was put back was not held".into());
    }
    let outcome = Outcome {
        step,
        injected_at_us,
        stall: progress.stall(),
        lasted,
        took: started.elapsed(),
        refused: progress.noted().refused() - refused_before,
    };
    (outcome, rested)
}

fn conclude(
    args: &NemesisArgs,
    seed: u64,
    mut world: World,
    progress: &Progress,
    (seen, told): (Seen, Told),
    outcomes: Vec<Outcome>,
    mut breaches: Breaches,
) -> Report {
    for node in world.terminate() {
        let log = world.log_tail(node, LOG_LINES);
        breaches.add("a node does not end well", format!("node {node}: {log}"));
    }
    say("checking");
    let noted = progress.noted().clone();
    breaches.extend(noted.breaches.clone());
    if seen.unanswered > 0 {
        breaches.add("documents without an answer", seen.unanswered.to_string());
    }
    let (received, repeated) = (seen.received.len() as u64, seen.repeated);
    let across = seen.across;
    let findings = check::check(&world, (seen, &told), &outcomes, &mut breaches);
    Report {
        seed,
        stores: world.stores,
        connections: args.connections,
        outcomes,
        received,
        repeated,
        across,
        noted,
        restarts: world.restarts,
        releases: world.releases,
        releases_for_dead: world.releases_for_dead,
        findings,
        breaches,
    }
}
