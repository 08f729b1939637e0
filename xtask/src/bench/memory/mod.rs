//! `cargo xtask bench memory`: the resident memory of the real programs after waves of clients that do not read, after
//! reloads of many routes, and with many discovered services.
//!
//! The measurement needs Linux, which tells the memory of a process under `/proc`.

mod client;
mod origin;
mod program;
mod reloads;
mod services;
mod waves;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::ValueEnum;

use crate::process::Invocation;
use crate::say;
use crate::workspace::Workspace;

/// A guard against a build that hangs, not a budget.
const BUILD_LIMIT: Duration = Duration::from_secs(60 * 60);

/// The gateway, which is a package and a program.
const GATEWAY: &str = "proxy-gateway";

/// The emulated Service Fabric cluster, which is a package and a program.
const EMULATOR: &str = "servicefabric-emulator";

#[derive(clap::Args)]
pub(crate) struct Options {
    /// Measurements to run; all of them by default
    #[arg(value_enum)]
    what: Vec<What>,
    /// The gateway to measure, for comparisons; built with the profile of users by default
    #[arg(long, value_name = "FILE")]
    program: Option<PathBuf>,
    /// The emulator of Service Fabric; built by default
    #[arg(long, value_name = "FILE")]
    emulator: Option<PathBuf>,
    /// Build both for development, which takes less time and more memory: the code is larger
    #[arg(long)]
    dev: bool,
    /// Number of routes that are reloaded
    #[arg(long, value_name = "ROUTES", default_value_t = 10_000)]
    routes: usize,
    /// Number of services that are discovered, in hundreds
    #[arg(long, value_name = "SERVICES", default_value_t = 10_000)]
    services: usize,
    /// Fail if a program holds more MiB at the end of a measurement
    #[arg(long, value_name = "MIB")]
    most: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum What {
    /// Waves of HTTP/1.1 and HTTP/2 clients that ask for much and read nothing
    Waves,
    /// Six reloads of a file with many routes
    Reloads,
    /// Discovery of many services from an emulated Service Fabric cluster
    Services,
}

/// The memory of a program at the steps of a measurement, in MiB.
struct Series {
    /// The steps, with what was measured.
    steps: Vec<(String, u64)>,
}

pub(super) fn run(options: &Options) -> crate::Result<ExitCode> {
    if cfg!(not(target_os = "linux")) {
        return Err("the memory of a process is read from /proc, which Linux alone has".into());
    }
    let wanted = |what| options.what.is_empty() || options.what.contains(&what);
    let gateway = binary(GATEWAY, options.program.as_ref(), options.dev)?;
    let mut most = 0;
    let mut show = |title: &str, series: &Series| {
        say!("{title}");
        for (step, mib) in &series.steps {
            say!("  {step:<34} {mib:>6} MiB");
        }
        most = most.max(series.last());
    };
    if wanted(What::Waves) {
        let series = waves::measure(&gateway)?;
        show("waves of clients that do not read", &series);
    }
    if wanted(What::Reloads) {
        let series = reloads::measure(&gateway, options.routes)?;
        show(&format!("reloads of {} routes", options.routes), &series);
    }
    if wanted(What::Services) {
        let emulator = binary(EMULATOR, options.emulator.as_ref(), options.dev)?;
        let series = services::measure(&gateway, &emulator, options.services)?;
        let title = format!("{} services of Service Fabric", options.services);
        show(&title, &series);
    }
    match options.most {
        Some(limit) if most > limit => {
            eprintln!("xtask: {most} MiB at the end, above the limit of {limit}");
            Ok(ExitCode::FAILURE)
        }
        _ => Ok(ExitCode::SUCCESS),
    }
}

/// Returns the given program, or builds it.
fn binary(name: &str, given: Option<&PathBuf>, dev: bool) -> crate::Result<PathBuf> {
    if let Some(given) = given {
        return Ok(given.canonicalize()?);
    }
    let profile = if dev { "dev" } else { "release" };
    let build = Invocation::cargo("build --package").arg(name).args([
        "--bin",
        name,
        "--all-features",
        "--profile",
        profile,
    ]);
    say!("{build}");
    let built = build.show(BUILD_LIMIT)?;
    if !built.is_success() {
        return Err(format!("{name} cannot be built: {built}").into());
    }
    let directory = if dev { "debug" } else { "release" };
    let target = Workspace::load()?.target_directory().to_owned();
    Ok(target.join(directory).join(name))
}

impl Series {
    fn new() -> Self {
        Self { steps: Vec::new() }
    }

    fn add(&mut self, step: impl Into<String>, mib: u64) {
        self.steps.push((step.into(), mib));
    }

    /// The memory at the end.
    fn last(&self) -> u64 {
        self.steps.last().map_or(0, |(_, mib)| *mib)
    }
}

/// Waits for a fixed time, for memory that the program gives back later.
#[expect(clippy::disallowed_methods, reason = "there is no worker to block")]
fn pause(time: Duration) {
    std::thread::sleep(time);
}
