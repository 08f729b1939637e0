//! The command line around the library.

mod check;
mod cli;
mod failure;
mod json;
mod load;
mod logging;
mod print;
mod render;
mod screen;
mod serve;
mod signals;

use std::io::{self, Write};
use std::process::ExitCode;

use clap::Parser;

use self::cli::{Cli, Command};

/// The schema of the configuration.
const SCHEMA: &str = include_str!("../../schema/config.json");

/// Runs what the command line asks for; wrong usage ends with 2 before that.
pub(crate) fn run() -> ExitCode {
    let result = match Cli::parse().command {
        Command::Serve(options) => serve::run(&options),
        Command::Render(options) => render::run(&options),
        Command::Check(options) => check::run(&options),
        Command::Schema => print::print(SCHEMA),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            // The exit code says it to those who do not read.
            let _ = writeln!(io::stderr(), "xds-control-plane: {failure}");
            ExitCode::FAILURE
        }
    }
}
