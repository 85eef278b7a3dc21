//! The command line: one file per command.
//!
//! stdout carries only the result of a command; everything else goes to stderr. Exit codes: 0 done,
//! 1 refused or failed (one line on stderr says why, as JSON with `--json`), 2 wrong usage.
//! `status` and `doctor` are checks: 1 action needed, 2 not known.

mod descriptors;
pub mod manual;
pub mod serve;

use std::ffi::OsString;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Parser, Subcommand};

use crate::features::{
    approvals, archive, assignments, by_hand, checkpoints, import, lifecycle, numbers, operations,
    reference, register, reservations, series, statement, tokens,
};
use crate::terminal::settings::SettingsArgs;
use crate::terminal::{ending, output};

/// Hands out document numbers: formatted, audited, and never the same one twice.
#[derive(Clone, Debug, Parser)]
#[command(name = "numerator", version, arg_required_else_help = true)]
pub struct Cli {
    /// Where the settings come from.
    #[command(flatten)]
    pub settings: SettingsArgs,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

const SERVE_EXAMPLES: &str = "Examples:
  numerator serve
  numerator serve --listen 127.0.0.1:9000 --data-dir ./data
  numerator serve --config numerator.toml";

/// What to do.
#[derive(Clone, Debug, Subcommand)]
pub enum Command {
    /// Answer requests over HTTP until SIGTERM or SIGINT
    #[command(after_help = SERVE_EXAMPLES)]
    Serve,
    /// Bring the ledger's schema up to date, beside services that run on it
    Migrate(operations::migrate::MigrateArgs),
    /// Ask the service at `http.health_listen` or `http.listen` whether numbers can be issued
    Ready,
    /// Take a number and print it
    Next(numbers::next_command::NextArgs),
    /// What is done with reservations
    #[command(flatten)]
    Reservation(reservations::command::ReservationCommand),
    /// Print the number that would come next; takes nothing
    Preview(numbers::preview_command::PreviewArgs),
    /// Give a document's number another label; takes nothing
    Revise(register::revise_command::ReviseArgs),
    /// Void a number, with a reason, and take the one that stands in its place
    Void(lifecycle::void_command::VoidArgs),
    /// Note what variables of a number should have been, where the number does not show them
    Correct(lifecycle::correct_command::CorrectArgs),
    /// Register a number that was given by hand, with its document and a reason
    Register(by_hand::command::RegisterArgs),
    /// Assign a number of a range to a document
    Assign(assignments::command::AssignArgs),
    /// Read a number back into its parts
    Parse(register::parse_command::ParseArgs),
    /// Save tables of ids and codes, and memberships, from CSV files; list them
    #[command(subcommand)]
    Reference(reference::command::ReferenceCommand),
    /// Save series files, list and show series, explain which one serves a request
    #[command(subcommand)]
    Series(series::command::SeriesCommand),
    /// Print partitions, owners, epochs, nodes, lags, ceilings and totals
    Status(operations::status::StatusArgs),
    /// Look for what would keep a service from its work, before it starts and beside one that runs
    Doctor(operations::doctor::DoctorArgs),
    /// Check that no number was issued twice, none is unaccounted for, and Redis agrees
    Verify(operations::verify::VerifyArgs),
    /// Make the key of checkpoints, print them, compare the record with them
    #[command(subcommand)]
    Audit(checkpoints::command::AuditCommand),
    /// Say that a collision or a rejected record is explained: `verify` then reports the next one
    Acknowledge(operations::acknowledge::AcknowledgeArgs),
    /// Carry on what stands still: recoveries, outboxes of silent nodes, counters to be settled; or
    /// release what is held because the ledger went back
    Reconcile(operations::reconcile::ReconcileArgs),
    /// See to it that no outbox in Redis holds what the journal does not have
    Drain(operations::drain::DrainArgs),
    /// Have the database take the numbers, or Redis again
    Fallback(operations::fallback::FallbackArgs),
    /// List the numbers that will not be issued any more, and why
    Gaps(register::gaps_command::GapsArgs),
    /// List counters by series, type, project, originator and year, and how full they are
    Counters(register::counters_command::CountersArgs),
    /// Have a counter go on with a value further up, with a reason, where callers have no tokens
    MoveCounter(approvals::command::MoveCounterArgs),
    /// Draw up what became of every number of a series in a period, for auditors
    Statement(statement::command::StatementArgs),
    /// Look issued numbers up: by number, document, user, series, type, project, period, status
    Find(register::find_command::FindArgs),
    /// Write the register of numbers, or a part of it, as CSV, JSON lines or a workbook
    Export(register::export_command::ExportArgs),
    /// Move old rows of the journal to files; list the files, or note that one is deleted
    Archive(archive::command::ArchiveArgs),
    /// List what the ledger noted beside the numbers: recoveries, adoptions, hazards, changes
    Events(operations::events::EventsArgs),
    /// Move in from another system: report on its numbers or tables, and import them
    Import(import::command::ImportArgs),
    /// Make, list, revoke and rotate bearer tokens
    #[command(subcommand)]
    Token(tokens::command::TokenCommand),
    /// Print a script that completes commands and options in a shell
    Completions(manual::CompletionsArgs),
    /// Write the manual pages of all commands to a folder
    Man(manual::ManArgs),
}

/// Longest wait for threads that still work when a command has ended.
const THREADS_STOP_MAX: Duration = Duration::from_secs(1);

/// The whole program: reads the command line, whose first word is the program's own name, and runs
/// one command on a runtime of its own. Never returns on wrong usage.
///
/// Its arguments have one type, so that it is compiled only here: a generic function would be
/// compiled again, with all that it calls, in each program that calls it.
///
/// # Panics
/// When the threads of the runtime cannot be started.
pub fn main(args: Vec<OsString>) -> ExitCode {
    // Two TLS libraries are available; the chosen provider must be installed before its first use.
    // That fails only if one is installed already, and then there is nothing left to choose.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let as_json = args.iter().take_while(|arg| *arg != "--").any(|arg| arg == "--json");
    let cli = Cli::parse_from(args);
    let runtime = runtime().expect("threads for the runtime");
    let outcome = runtime.block_on(run(cli));
    // While the runtime's threads still run: they send the remaining data.
    #[cfg(feature = "otlp")]
    crate::telemetry::export::finish();
    // Abandoned work may still block a thread: a name look-up without a result, for example.
    runtime.shutdown_timeout(THREADS_STOP_MAX);
    match outcome {
        Ok(code) => code,
        Err(error) => {
            output::complain(&error, as_json);
            ExitCode::FAILURE
        }
    }
}

/// The runtime: one worker for two cores, unless the runtime's own variable says otherwise. Workers
/// that wake each other for every request and split what one flight could carry cost more than they
/// gain; and a machine with few cores shares them with Redis and the database. Public so that
/// programs for comparison in measurements run on the same runtime.
///
/// # Errors
/// When its threads cannot be started.
pub fn runtime() -> std::io::Result<tokio::runtime::Runtime> {
    runtime_builder().build()
}

/// What builds one.
fn runtime_builder() -> tokio::runtime::Builder {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    if std::env::var_os("TOKIO_WORKER_THREADS").is_none() {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        builder.worker_threads(cores.div_ceil(2));
    }
    builder.enable_all();
    builder
}

async fn run(cli: Cli) -> anyhow::Result<ExitCode> {
    let watches = matches!(&cli.command, Command::Status(args) if args.watch.is_some());
    let drains = matches!(&cli.command, Command::Serve);
    let work = Box::pin(run_command(cli));
    if drains { ending::closing(work).await } else { ending::interruptible(work, watches).await }
}

async fn run_command(Cli { settings, command }: Cli) -> anyhow::Result<ExitCode> {
    let done = match command {
        Command::Status(args) => {
            return operations::status::run(&settings.prepare("warn")?, &args).await;
        }
        Command::Doctor(args) => {
            return operations::doctor::run(&settings, &args).await;
        }
        Command::Serve => serve::run(&settings.load()?, &settings).await,
        Command::Migrate(args) => {
            operations::migrate::run(&settings.prepare_to_migrate("info")?, &args).await
        }
        Command::Ready => operations::ready::run(&settings.prepare("warn")?).await,
        Command::Next(args) => {
            numbers::next_command::run(&settings.prepare_to_migrate("warn")?, args).await
        }
        Command::Reservation(command) => reservations::command::run(&settings, command).await,
        Command::Preview(args) => {
            numbers::preview_command::run(&settings.prepare("warn")?, args).await
        }
        Command::Revise(args) => {
            register::revise_command::run(&settings.prepare("warn")?, args).await
        }
        Command::Void(args) => {
            lifecycle::void_command::run(&settings.prepare_to_migrate("warn")?, args).await
        }
        Command::Correct(args) => {
            lifecycle::correct_command::run(&settings.prepare("warn")?, args).await
        }
        Command::Register(args) => {
            by_hand::command::run(&settings.prepare_to_migrate("warn")?, args).await
        }
        Command::Assign(args) => {
            assignments::command::run(&settings.prepare_to_migrate("warn")?, args).await
        }
        Command::Parse(args) => {
            register::parse_command::run(&settings.prepare("warn")?, args).await
        }
        Command::Reference(command) => {
            reference::command::run(&settings.prepare("warn")?, command).await
        }
        Command::Series(command) => series::command::run(&settings.prepare("warn")?, command).await,
        Command::Verify(args) => operations::verify::run(&settings.prepare("warn")?, &args).await,
        Command::Audit(command) => {
            checkpoints::command::run(|| Ok(settings.prepare("warn")?), command).await
        }
        Command::Acknowledge(args) => {
            operations::acknowledge::run(&settings.prepare("warn")?, args).await
        }
        Command::Reconcile(args) => {
            operations::reconcile::run(&settings.prepare("warn")?, &args).await
        }
        Command::Drain(args) => operations::drain::run(&settings.prepare("warn")?, &args).await,
        Command::Fallback(args) => {
            operations::fallback::run(&settings.prepare("warn")?, &args).await
        }
        Command::Gaps(args) => register::gaps_command::run(&settings.prepare("warn")?, &args).await,
        Command::Counters(args) => {
            register::counters_command::run(&settings.prepare("warn")?, args).await
        }
        Command::MoveCounter(args) => {
            approvals::command::run(&settings.prepare("warn")?, args).await
        }
        Command::Statement(args) => statement::command::run(&settings.prepare("warn")?, args).await,
        Command::Find(args) => register::find_command::run(&settings.prepare("warn")?, args).await,
        Command::Export(args) => {
            register::export_command::run(&settings.prepare("warn")?, args).await
        }
        Command::Archive(args) => archive::command::run(&settings.prepare("warn")?, args).await,
        Command::Events(args) => operations::events::run(&settings.prepare("warn")?, args).await,
        Command::Import(args) => import::command::run(&settings.prepare("warn")?, args).await,
        Command::Token(command) => {
            tokens::command::run(|| Ok(settings.prepare("warn")?), command).await
        }
        Command::Completions(args) => manual::completions(&args),
        Command::Man(args) => manual::man(&args),
    };
    done.map(|()| ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests;
