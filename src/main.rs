//! Parses the command line and runs one command.

use std::process::ExitCode;

use clap::Parser;
use numerator::cli::{
    Cli, Command, next, parse, preview, restored, say, series, serve, status, token, verify,
};

#[tokio::main]
async fn main() -> ExitCode {
    // Two TLS libraries are in the tree's reach; whoever asks first must find the one we chose.
    // It fails only where one is installed already, and then there is nothing left to choose.
    let _ = rustls::crypto::ring::default_provider().install_default();
    match run(Cli::parse()).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let line = format!("{error:#}").replace('\n', " ");
            say(format_args!("numerator: {line}"));
            ExitCode::FAILURE
        }
    }
}

async fn run(Cli { settings, command }: Cli) -> anyhow::Result<()> {
    match command {
        Command::Serve => serve::run(&settings.prepare("info")?).await,
        Command::Next(args) => next::run(&settings.prepare("warn")?, args).await,
        Command::Preview(args) => preview::run(&settings.prepare("warn")?, args).await,
        Command::Parse(args) => parse::run(&settings.prepare("warn")?, args).await,
        Command::Series(command) => series::run(&settings.prepare("warn")?, command).await,
        Command::Status(args) => status::run(&settings.prepare("warn")?, &args).await,
        Command::Verify(args) => verify::run(&settings.prepare("warn")?, &args).await,
        Command::Reconcile(args) => restored::run(&settings.prepare("warn")?, &args).await,
        Command::Token(command) => token::run(command),
    }
}
