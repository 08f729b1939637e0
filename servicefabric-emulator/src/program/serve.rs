use std::io::Read;
use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

use program_kit::{Failure, Logging, Stop, read};
use servicefabric_emulator::cluster::{APPLICATION_MANIFEST, ApplicationType, Date, MAX_MANIFEST};
use servicefabric_emulator::gateway::{
    Builder, Dialect, Emulator, Responder, Role, Time, TlsOptions,
};
use servicefabric_emulator::topology::Topology;
use tokio::time::sleep;

use super::cli;
use super::{descriptors, screen};

/// The example cluster, for users without a topology.
const EXAMPLE: &str = include_str!("example.toml");

/// The interval of progress messages while a large cluster is built.
const PROGRESS: Duration = Duration::from_secs(2);

/// Runs a cluster until the stop signal.
pub(super) fn run(options: &cli::Serve) -> Result<(), Failure> {
    Logging::new("info", "info,servicefabric_emulator=debug").start()?;
    let builder = describe(options)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::new(format!("the system gives no runtime: {error}")))?;
    let result = runtime.block_on(serve(builder, options));
    // A cluster that is still being built is no longer needed, so its thread is not awaited.
    runtime.shutdown_background();
    result
}

async fn serve(builder: Builder, options: &cli::Serve) -> Result<(), Failure> {
    let mut stop = Stop::listen()?;
    let emulator = tokio::select! {
        started = builder.start() => started.map_err(|error| Failure::from_error(&error))?,
        () = stop.asked() => return Ok(()),
        () = tell_progress() => unreachable!("it is told for ever"),
    };
    let shown = emulator
        .with_cluster(|cluster| match options.services {
            true => descriptors::check(cluster, descriptors::limit()),
            false => Ok(()),
        })
        .and_then(|()| screen::show(&emulator, options));
    if shown.is_ok() {
        stop.asked().await;
        tracing::info!("stopping; again to stop at once");
    }
    emulator.shutdown().await;
    shown
}

/// Logs periodically that the cluster is being built, once that takes long.
async fn tell_progress() {
    let begun = Instant::now();
    loop {
        sleep(PROGRESS).await;
        tracing::info!(
            seconds = begun.elapsed().as_secs(),
            "the cluster is being built; Ctrl-C stops that"
        );
    }
}

fn describe(options: &cli::Serve) -> Result<Builder, Failure> {
    let mut topology = match &options.topology {
        Some(path) => load(path)?,
        None if !options.package.is_empty() => Topology::default(),
        None => Topology::from_toml(EXAMPLE).map_err(|error| Failure::from_error(&error))?,
    };
    for warning in topology.warnings() {
        tracing::warn!("{warning}");
    }
    if topology.cluster.start.is_none() && !options.manual_time {
        // No date was chosen, and people compare the dates with their clocks.
        topology.cluster.start = Some(Date::of(SystemTime::now()).to_string());
    }
    let mut builder = Emulator::builder(topology)
        .listen(&options.listen)
        .time(if options.manual_time {
            Time::Manual
        } else {
            Time::Real {
                speed: options.speed,
            }
        })
        .dialect(match options.dialect {
            cli::DialectArg::Current => Dialect::Current,
            cli::DialectArg::Runtime64 => Dialect::Runtime64,
        });
    for directory in &options.package {
        builder = builder.package(package(directory)?);
    }
    if options.services {
        let mut responder = Responder::new();
        if let Some(listeners) = descriptors::listeners(descriptors::limit()) {
            responder = responder.at_most(listeners);
        }
        builder = builder.workload(responder);
    }
    if let Some(items) = options.page_size {
        builder = builder.page_size(items as usize);
    }
    if let Some(seconds) = options.report_interval {
        builder = builder.report_interval(Duration::from_secs(seconds));
    }
    secure(builder, &options.security)
}

fn secure(mut builder: Builder, options: &cli::SecurityArgs) -> Result<Builder, Failure> {
    if let (Some(certificate), Some(key)) = (&options.tls_cert, &options.tls_key) {
        let mut tls = TlsOptions::new(read(certificate)?, read(key)?);
        if let Some(path) = &options.client_ca {
            tls = tls.admins(read(path)?);
        }
        if let Some(path) = &options.reader_ca {
            tls = tls.readers(read(path)?);
        }
        builder = builder.tls(tls);
    }
    for token in &options.bearer {
        builder = builder.bearer(token, Role::Admin);
    }
    for token in &options.reader_bearer {
        builder = builder.bearer(token, Role::Reader);
    }
    Ok(builder)
}

fn load(path: &Path) -> Result<Topology, Failure> {
    let text = read(path)?;
    let json = path
        .extension()
        .is_some_and(|ending| ending.eq_ignore_ascii_case("json"));
    let topology = if json {
        Topology::from_json(&text)
    } else {
        Topology::from_toml(&text)
    };
    topology.map_err(|error| Failure::new(format!("{}: {error}", path.display())))
}

/// Reads the application package in a directory.
fn package(directory: &Path) -> Result<ApplicationType, Failure> {
    if !directory.join(APPLICATION_MANIFEST).is_file() {
        return Err(Failure::new(format!(
            "{} is no application package: it has no {APPLICATION_MANIFEST}; give the directory that a build makes, often `pkg/Release`",
            directory.display()
        )));
    }
    let mut unreadable = None;
    let read = ApplicationType::from_package(|file| {
        let path = directory.join(file);
        let text = std::fs::File::open(&path).and_then(|opened| {
            let mut text = String::new();
            // One byte beyond the limit shows that the file is too large.
            opened
                .take(MAX_MANIFEST as u64 + 1)
                .read_to_string(&mut text)?;
            Ok(text)
        });
        match text {
            Ok(text) => Some(text),
            Err(error) => {
                unreadable = Some(format!("{} cannot be read: {error}", path.display()));
                None
            }
        }
    });
    match (read, unreadable) {
        (Ok(read), None) => Ok(read),
        (_, Some(unreadable)) => Err(Failure::new(unreadable)),
        (Err(error), None) => Err(Failure::new(format!("{}: {error}", directory.display()))),
    }
}
