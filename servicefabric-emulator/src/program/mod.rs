//! The command line around the library.

mod cli;
mod descriptors;
mod failure;
mod logging;
mod print;
mod screen;
mod serve;
mod signals;
mod timeline;

use std::io::{self, Write};
use std::process::ExitCode;

use clap::Parser;

use self::cli::{Cli, Command};

/// Runs what the command line asks for; wrong usage ends with 2 before that.
pub(crate) fn run() -> ExitCode {
    let result = match Cli::parse().command {
        Command::Serve(options) => serve::run(&options),
        Command::Timeline(options) => timeline::run(&options),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            // The exit code says it to those who do not read.
            let _ = writeln!(io::stderr(), "servicefabric-emulator: {failure}");
            ExitCode::FAILURE
        }
    }
}
