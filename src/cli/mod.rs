//! The command line: one file per command.
//!
//! stdout carries only the result of a command; everything else goes to stderr. Exit codes: 0 done,
//! 1 refused or failed (one line on stderr says why), 2 wrong usage.

mod inputs;
mod logs;
pub mod next;
mod output;
pub mod parse;
pub mod preview;
pub mod restored;
pub mod series;
pub mod serve;
mod session;
mod settings;
pub mod status;
pub mod token;
pub mod verify;

pub use output::say;
pub use settings::SettingsArgs;

use clap::{Parser, Subcommand};

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

/// What to do.
#[derive(Clone, Debug, Subcommand)]
pub enum Command {
    /// Answer requests over HTTP until SIGTERM or SIGINT
    Serve,
    /// Take a number and print it
    Next(next::NextArgs),
    /// Print the number that would come next; takes nothing
    Preview(preview::PreviewArgs),
    /// Read a number back into its parts
    Parse(parse::ParseArgs),
    /// Save series files, list and show series
    #[command(subcommand)]
    Series(series::SeriesCommand),
    /// Print partitions, owners, epochs, nodes and totals
    Status(status::StatusArgs),
    /// Check that no number was issued twice and none is unaccounted for
    Verify(verify::VerifyArgs),
    /// Put right what the program cannot decide by itself
    Reconcile(restored::RestoredArgs),
    /// Make bearer tokens
    #[command(subcommand)]
    Token(token::TokenCommand),
}

#[cfg(test)]
mod tests;
