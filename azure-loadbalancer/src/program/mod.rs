//! The command line of the load balancer program.

mod apply;
mod changes;
mod cli;
mod emulate;
mod followed;
mod health;
mod identity;
mod inputs;
mod leadership;
mod migrate;
mod nodes_from;
mod orphans;
mod plan;
mod report;
mod show;
mod target;

use std::future::Future;
use std::process::ExitCode;

use clap::Parser;
use program_kit::{Failure, Logging, print};

use self::cli::{Cli, Command, Described, Format};

/// The result of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Found {
    /// The command succeeded.
    Good,
    /// The check failed, and its result has been shown.
    Bad,
    /// Writes are pending, and the caller requested an exit code for that.
    Pending,
}

/// The exit code of [`Found::Pending`]; 2 is wrong usage.
const PENDING: u8 = 3;

/// Runs the command of the command line. Wrong usage exits with 2 before that.
pub(crate) fn run() -> ExitCode {
    let Cli {
        log_format,
        command,
    } = Cli::parse();
    let logging =
        Logging::new("warn", "info,azure_loadbalancer=debug").with_json(log_format == Format::Json);
    let result = logging.start().and_then(|_| run_command(command));
    let code = result.map(|found| match found {
        Found::Good => ExitCode::SUCCESS,
        Found::Bad => ExitCode::FAILURE,
        Found::Pending => ExitCode::from(PENDING),
    });
    program_kit::end("azure-loadbalancer", code)
}

fn run_command(command: Command) -> Result<Found, Failure> {
    match command {
        Command::Plan(options) => block_on(plan::run(&options)),
        Command::Apply(options) => block_on(apply::run(&options)),
        Command::Orphans(options) => block_on(orphans::run(&options)),
        Command::Emulator(options) => block_on(emulate::run(&options)),
        Command::Schema(options) => {
            print(match options.of {
                Described::Config => include_str!("../../schema/config.schema.json"),
                Described::Plan => include_str!("../../schema/plan.schema.json"),
                Described::Apply => include_str!("../../schema/apply.schema.json"),
            })?;
            Ok(Found::Good)
        }
    }
}

fn block_on(work: impl Future<Output = Result<Found, Failure>>) -> Result<Found, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let runtime =
        runtime.map_err(|error| Failure::new(format!("no runtime can be made: {error}")))?;
    runtime.block_on(work)
}
