//! The command line around the library.

mod check;
mod cli;
mod json;
mod load;
mod render;
mod screen;
mod serve;

use std::process::ExitCode;

use clap::Parser;
use program_kit::print;

use self::cli::{Cli, Command};

/// The schema of the configuration.
const SCHEMA: &str = include_str!("../../schema/config.json");

/// Runs the command. Wrong usage ends with exit code 2 before that.
pub(crate) fn run() -> ExitCode {
    let result = match Cli::parse().command {
        Command::Serve(options) => serve::run(&options),
        Command::Render(options) => render::run(&options),
        Command::Check(options) => check::run(&options),
        Command::Schema => print(SCHEMA),
    };
    program_kit::end("xds-control-plane", result.map(|()| ExitCode::SUCCESS))
}
