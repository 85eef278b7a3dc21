//! The executable: hands the command line to the library.

use std::process::ExitCode;

fn main() -> ExitCode {
    numerator::commands::main(std::env::args_os().collect())
}
