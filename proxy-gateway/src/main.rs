//! A ready-to-run reverse proxy that discovers its services. See the README of this package.

mod admin_socket;
mod admin_tokens;
mod affinity_keys;
mod allocator;
mod certificates;
mod check;
mod cli;
mod commands;
mod document;
mod environment;
mod error_pages;
mod faults;
mod gateway;
#[cfg(target_os = "linux")]
mod hot_restart;
#[cfg(not(target_os = "linux"))]
#[path = "hot_restart_elsewhere.rs"]
mod hot_restart;
mod log_filter;
mod logging;
mod open_files;
mod preflight;
mod regular_file;
mod request_records;
mod secret_file;
mod service_manager;
mod settings;
mod sources;
mod starting;
mod traces;

use std::process::ExitCode;

use clap::Parser;
use program_kit::Failure;

use self::cli::{Cli, Command};

fn main() -> ExitCode {
    // Wrong usage exits here, with 2.
    let cli = Cli::parse();
    // The control plane needs only this thread; the forwarding threads belong to the server.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .thread_keep_alive(allocator::IDLE_THREADS)
        .build();
    let result = match runtime {
        Ok(runtime) => runtime.block_on(dispatch(cli)),
        Err(error) => Err(Failure::new(format!(
            "the system gives no runtime: {error}"
        ))),
    };
    program_kit::end("proxy-gateway", result.map(|()| ExitCode::SUCCESS))
}

async fn dispatch(cli: Cli) -> Result<(), Failure> {
    match cli.command {
        Command::Run(files) => commands::run(&files).await,
        Command::Check(options) => commands::check(&options),
        Command::Explain(options) => commands::explain(&options),
        Command::Discover(options) => commands::discover(&options).await,
        Command::Health(options) => commands::health(&options),
        Command::Schema => commands::schema(),
    }
}
