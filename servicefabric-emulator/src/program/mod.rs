//! The command line of the emulator.

mod cli;
mod descriptors;
mod screen;
mod serve;
mod timeline;

use std::process::ExitCode;

use clap::Parser;

use self::cli::{Cli, Command};

/// Runs the command of the command line. Wrong usage exits with 2 before that.
pub(crate) fn run() -> ExitCode {
    let result = match Cli::parse().command {
        Command::Serve(options) => serve::run(&options),
        Command::Timeline(options) => timeline::run(&options),
    };
    program_kit::end("servicefabric-emulator", result.map(|()| ExitCode::SUCCESS))
}
