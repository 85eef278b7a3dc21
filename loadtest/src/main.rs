//! Load generator, baselines and fault drills for `numerator`.
//!
//! Starts servers of its own and never uses one that was running before. The service that it drills
//! and measures is this very executable, run again: always the same code, and no second build.

mod baselines;
mod client;
mod compare;
mod examples;
mod figures;
mod lags;
mod load;
mod nemesis;
mod pace;
mod report;
mod scenarios;
mod soak;
mod sqlite;
mod stage;
mod tally;
mod work;

use std::ffi::OsString;
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use testkit::service::Program;

/// Exit code for an invalid command line.
const WRONG_USAGE: u8 = 2;

/// Load generator, baselines and fault drills for numerator.
#[derive(Debug, Parser)]
#[command(version, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Measure the service beside other ways to do the same, and print the table
    ///
    /// Checks every number that it receives. Exits 1 when one came twice or is missing; whether the
    /// figures reach what they should is said in the table.
    Compare(compare::CompareArgs),
    /// Inject random faults under load and check that no number was doubled or lost
    ///
    /// Starts three nodes, Redis, PostgreSQL or a SQLite file, and a proxy on each link between
    /// them. Exits 1 on any breach of a promise.
    Nemesis(nemesis::NemesisArgs),
    /// Take numbers at a steady rate for a long time, and see whether anything grows
    Soak(soak::SoakArgs),
    /// Be a baseline
    #[command(hide = true)]
    Baseline(baselines::BaselineArgs),
    /// Be numerator itself
    #[command(hide = true, disable_help_flag = true)]
    Numerator {
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<OsString>,
    },
}

fn main() -> ExitCode {
    match Cli::parse().command {
        Command::Compare(args) => compare::run(&args),
        Command::Soak(args) => soak::run(&args),
        Command::Baseline(args) => baselines::run(&args),
        Command::Nemesis(args) => nemesis::run(&args),
        Command::Numerator { arguments } => numerator::commands::main(
            std::iter::once("numerator".into()).chain(arguments).collect(),
        ),
    }
}

/// This executable as the program, with settings that override the file's.
fn program(settings: &[&str]) -> Program {
    program_at(std::env::current_exe().expect("the path of this executable"), settings)
}

/// The same of another build of this executable.
fn program_at(path: PathBuf, settings: &[&str]) -> Program {
    let flags = settings.iter().flat_map(|setting| ["--setting", setting]);
    let arguments = std::iter::once("numerator").chain(flags).map(str::to_owned).collect();
    Program { path, arguments }
}

/// The file of a series of one type: its counters never reset, and are distinguished by a variable
/// `LINE` of `line_digits` digits.
fn series(code: &str, template: &str, line_digits: usize, settings: &str) -> String {
    format!(
        "[[series]]\ncode = \"{code}\"\nname = \"{code}\"\n{settings}\n\
         template = \"{template}\"\nserves = {{ types = [\"{code}\"] }}\n[series.variables]\n\
         LINE = {{ required = true, alphabet = \"0-9\", width = {line_digits} }}\n\
         [[series.serials]]\ncounter = [\"type\", \"LINE\"]\n"
    )
}

/// Logs progress for people; only the report goes to stdout.
fn say(line: &str) {
    let _ = writeln!(io::stderr(), "{line}");
}
