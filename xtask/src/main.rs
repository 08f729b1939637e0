//! Development tasks of this workspace for developers and CI: checks, real peers, benchmarks.
//!
//! `cargo xtask` alone prints the commands and where to begin.

// Output of parallel steps is collected: `say!`.
#![warn(clippy::print_stdout)]

mod api;
mod bench;
mod checks;
mod ci;
mod coverage;
mod descriptors;
mod disk;
mod examples;
mod output;
mod packaging;
mod page;
mod peers;
mod process;
mod site;
mod steps;
mod test;
mod tidy;
mod workspace;

use std::error::Error;
use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};

/// The result of a task: every error becomes a message for the user, so errors have no kinds.
type Result<T> = std::result::Result<T, Box<dyn Error>>;

#[derive(Parser)]
#[command(
    name = "cargo xtask",
    about = "Checks, real peers and benchmarks of this workspace",
    after_help = "Where to begin:\n  \
        cargo test --workspace       needs nothing but Rust; tests that need a real peer say that they were left out\n  \
        cargo xtask test             the tests with real peers, which it fetches under target/peers, without root\n  \
        cargo xtask test --quick     the tests with the peers that are already here\n  \
        cargo xtask ci               everything that CI checks; --only lint,features runs some of it\n  \
        cargo xtask bench peers --quick   what a request costs, beside nginx, HAProxy, Envoy and others"
)]
struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Subcommand)]
enum Command {
    /// Runs the tests: unit, integration, documentation, real peers, examples
    Test(test::Options),
    /// Runs every check that CI runs, continues after a failure, and fails at the end
    Ci(ci::Options),
    /// Tries what is under packaging/ and packages the crates, as a user would install them
    Packaging(packaging::Options),
    /// Fetches the real programs that tests talk to, under target/peers, without root and without touching the system
    Peers(peers::Options),
    /// Compares the public items of the libraries, and the types of other crates in them, with the checked-in lists
    PublicApi(api::Options),
    /// Measures which lines of a library its tests reach
    Coverage(coverage::Options),
    /// Builds the documentation as a site with search, in target/site
    Site,
    /// Generates the descriptors of Envoy's API that the xDS control plane carries
    Descriptors,
    /// Runs the benchmarks, or compares the gateway with other proxies
    Bench(bench::Options),
}

fn main() -> ExitCode {
    // Cargo starts this program in place of the compiler in measured builds.
    if let Some(status) = bench::build::stand_in() {
        return status;
    }
    let done = match Arguments::parse().command {
        Some(Command::Test(options)) => test::run(&options),
        Some(Command::Ci(options)) => ci::run(&options),
        Some(Command::PublicApi(options)) => api::run(&options),
        Some(Command::Packaging(options)) => packaging::run(&options),
        Some(Command::Peers(options)) => peers::run(&options),
        Some(Command::Coverage(options)) => coverage::run(&options),
        Some(Command::Site) => site::run(),
        Some(Command::Descriptors) => descriptors::run(),
        Some(Command::Bench(options)) => bench::run(&options),
        None => Arguments::command()
            .print_help()
            .map(|()| ExitCode::SUCCESS)
            .map_err(Into::into),
    };
    done.unwrap_or_else(|error| {
        eprintln!("xtask: {error}");
        ExitCode::FAILURE
    })
}
