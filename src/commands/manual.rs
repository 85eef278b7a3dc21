//! `numerator completions` and `numerator man`: the data of shells and manual pages about the
//! commands, made from the definitions of `--help`. Reads no settings and opens no store.

use std::io;
use std::path::PathBuf;

use anyhow::Context;
use clap::{Args, CommandFactory};
use clap_complete::Shell;

use crate::commands::Cli;
use crate::terminal::output::{say, unless_closed};

/// Which shell.
#[derive(Clone, Debug, Args)]
pub struct CompletionsArgs {
    /// The shell
    #[arg(value_enum)]
    pub shell: Shell,
}

/// Where to.
#[derive(Clone, Debug, Args)]
pub struct ManArgs {
    /// Folder that gets one page per command, such as `/usr/local/share/man/man1`
    #[arg(value_name = "FOLDER")]
    pub folder: PathBuf,
}

/// Prints a script that completes the commands and options in a shell.
///
/// # Errors
/// A stdout that cannot be written.
pub fn completions(args: &CompletionsArgs) -> anyhow::Result<()> {
    // Printing to a closed stdout panics; writing to it does not.
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "numerator", &mut script);
    let written = io::Write::write_all(&mut io::stdout().lock(), &script);
    unless_closed(written).context("stdout cannot be written")
}

/// Writes manual pages: `numerator.1`, `numerator-next.1` and so on.
///
/// # Errors
/// A folder that does not exist or is not writable.
pub fn man(args: &ManArgs) -> anyhow::Result<()> {
    let folder = &args.folder;
    clap_mangen::generate_to(Cli::command(), folder)
        .with_context(|| format!("{} cannot be written", folder.display()))?;
    say(format_args!("the pages are in {}", folder.display()));
    Ok(())
}
