//! Load generator, baselines and fault drills for `numerator`.
//!
//! The commands come with the drills that they run; until then it says what it is for.

use clap::{CommandFactory, Parser};

/// Load generator, baselines and fault drills for numerator.
///
/// No drill ships yet: `scripts/test` has the load and fault tests.
#[derive(Debug, Parser)]
#[command(version, about)]
struct Cli {}

fn main() -> std::io::Result<()> {
    Cli::parse();
    Cli::command().print_help()
}
