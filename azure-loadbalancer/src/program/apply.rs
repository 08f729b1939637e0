use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use azure_loadbalancer::execute::{FollowOptions, Observer, ReconcileError, Reconciled, follow};
use azure_loadbalancer::sources::Source;
use azure_loadbalancer::{Node, Service};
use program_kit::{Failure, Stop, print};
use serde_json::json;

use super::Found;
use super::cli::{Apply, Format};
use super::health::{self, Health};
use super::inputs::{self, Settings, Wanted};
use super::leadership::Leadership;
use super::migrate;
use super::report;
use super::show::{self, Style};
use super::target::Azure;

/// Writes what services ask for. It is bad if one does not have it in the end.
pub(super) async fn run(options: &Apply) -> Result<Found, Failure> {
    if options.watch {
        return watch(options).await;
    }
    let wanted = Wanted::read(&options.inputs, Some(&options.members)).await?;
    let azure = Azure::open(&options.target, &wanted.settings)?;
    let mut stop = Stop::listen()?;
    if let Some(digest) = &options.migrate_to_standard {
        let found = tokio::select! {
            found = migrate::carry_out(digest, options.format, &wanted, &azure) => found?,
            () = stop.asked() => return Err(Failure::new("stopped; what is written is valid, and `plan --migrate-to-standard` shows what is left")),
        };
        keep(options.target.state.as_deref(), &azure)?;
        return Ok(found);
    }
    let done = azure.executor.reconcile(&wanted.services, &wanted.nodes);
    let report = tokio::select! {
        report = done => report.map_err(|error| Failure::from_error(&error))?,
        () = stop.asked() => return Err(Failure::new("stopped; what is written is valid, and `apply` goes on from there")),
    };
    keep(options.target.state.as_deref(), &azure)?;
    print(&match options.format {
        Format::Text => show::reconciled(&report, Style::of_stdout())
            .map_err(|error| Failure::from_error(&error))?,
        Format::Json => {
            let text = serde_json::to_string_pretty(&report::document(&report));
            text.map_err(|error| Failure::from_error(&error))? + "\n"
        }
    })?;
    Ok(found(&report))
}

fn found(report: &Reconciled) -> Found {
    if report.is_converged() && report.errors().is_empty() {
        Found::Good
    } else {
        Found::Bad
    }
}

/// Follows while this program may write, and stands by otherwise.
async fn watch(options: &Apply) -> Result<Found, Failure> {
    let mut settings = inputs::settings(&options.inputs, Some(&options.members))?;
    // What is wrong with it is not first found when another program has gone.
    Azure::open(&options.target, &settings)?;
    let health = Arc::new(Health::default());
    let _served = match &options.status_listen {
        None => None,
        Some(address) => {
            let served = health::serve(address, Arc::clone(&health)).await?;
            tracing::warn!(address = %served.address, "answering at /healthz, /readyz and /metrics");
            Some(served)
        }
    };
    let mut leadership = Leadership::new(options, Arc::clone(&health))?;
    let mut stop = Stop::listen()?;
    let mut past = Past::default();
    loop {
        tokio::select! {
            won = leadership.acquire() => won?,
            () = stop.asked() => break,
        }
        match inputs::settings(&options.inputs, Some(&options.members)) {
            Ok(now) => settings = now,
            Err(failure) => {
                tracing::error!(%failure, "the configuration cannot be used; the last one stays in force")
            }
        }
        let lost = tokio::select! {
            lost = leadership.keep() => lost,
            Err(failure) = lead(options, &mut settings, &health, &mut past) => {
                leadership.release().await;
                return Err(failure);
            }
            () = stop.asked() => break,
        };
        tracing::warn!(why = lost, "this program does not write any more");
    }
    leadership.release().await;
    Ok(past.last.unwrap_or(Found::Good))
}

/// What came of the reconciliations so far.
#[derive(Default)]
struct Past {
    last: Option<Found>,
    /// The lines that were printed the last time.
    shown: Vec<String>,
}

/// Follows services and nodes with each configuration that comes, until it is dropped.
async fn lead(
    options: &Apply,
    settings: &mut Settings,
    health: &Health,
    past: &mut Past,
) -> Result<std::convert::Infallible, Failure> {
    let mut azure = Azure::open(&options.target, settings)?;
    let mut pace = FollowOptions::default();
    pace.resync = Duration::from_secs(options.resync);
    loop {
        let (mut services, mut nodes, statuses) = sources(options)?;
        let mut told = Told {
            azure: &azure,
            state: options.target.state.as_deref(),
            format: options.format,
            health,
            statuses,
            past,
        };
        let next: Settings = tokio::select! {
            () = follow(&azure.executor, &mut *services, &mut *nodes, &pace, &mut told) => continue,
            next = inputs::changed(&options.inputs, &options.members, settings) => next,
        };
        match Azure::open(&options.target, &next) {
            Ok(mut opened) => {
                opened.executor = opened.executor.continuing(&azure.executor);
                azure = opened;
                tracing::warn!("the configuration has changed and is in force");
            }
            Err(failure) => {
                tracing::error!(%failure, "the configuration has changed and cannot be used; the last one stays in force");
            }
        }
        *settings = next;
    }
}

type Sources = (
    Box<dyn Source<Service>>,
    Box<dyn Source<Node>>,
    Option<Box<dyn Observer>>,
);

/// What is followed, and who writes statuses, if there is an API server that has them.
fn sources(options: &Apply) -> Result<Sources, Failure> {
    if let Some(client) = inputs::kubernetes(&options.inputs)? {
        let mut statuses = client.status_writer().with_events();
        if options.finalizer {
            statuses = statuses.with_finalizers();
        }
        let statuses: Box<dyn Observer> = Box::new(statuses);
        let (services, nodes) = (Box::new(client.services()), Box::new(client.nodes()));
        return Ok((services, nodes, Some(statuses)));
    }
    let (services, nodes) = inputs::files(&options.inputs, &options.members)?;
    Ok((services, nodes, None))
}

/// Prints what came of each reconciliation, keeps the state, and has statuses written.
struct Told<'a> {
    azure: &'a Azure,
    state: Option<&'a Path>,
    format: Format,
    health: &'a Health,
    statuses: Option<Box<dyn Observer>>,
    past: &'a mut Past,
}

impl Told<'_> {
    fn text(&mut self, result: &Result<Reconciled, ReconcileError>) -> String {
        if self.format == Format::Json {
            let document = result
                .as_ref()
                .map_or_else(report::failed, report::document);
            return format!("{document}\n");
        }
        let text = match result {
            Ok(report) => show::reconciled(report, Style::of_stdout()).unwrap_or_default(),
            Err(error) => format!("error: {}; it is tried again\n", Failure::from_error(error)),
        };
        // What was said the last time and still holds is no news, but for writes.
        let lines: Vec<_> = text.lines().map(str::to_owned).collect();
        let is_news = |line: &&String| line.contains("written:") || !self.past.shown.contains(line);
        let news: String = lines
            .iter()
            .filter(is_news)
            .map(|line| format!("{line}\n"))
            .collect();
        self.past.shown = lines;
        news
    }
}

#[async_trait]
impl Observer for Told<'_> {
    async fn reconciled(&mut self, result: &Result<Reconciled, ReconcileError>) -> bool {
        // Somebody who has stopped reading may still want the work done.
        let _ = print(&self.text(result));
        if let Err(failure) = keep(self.state, self.azure) {
            tracing::error!(%failure, "the state is not kept");
        }
        self.health.note(result);
        self.past.last = Some(result.as_ref().map_or(Found::Bad, found));
        match &mut self.statuses {
            Some(statuses) => statuses.reconciled(result).await,
            None => true,
        }
    }
}

/// Writes what became of the resources of a file.
fn keep(path: Option<&Path>, azure: &Azure) -> Result<(), Failure> {
    let (Some(path), Some(emulator)) = (path, &azure.emulator) else {
        return Ok(());
    };
    let resources = emulator.with(|machine| machine.resources());
    let text = serde_json::to_string_pretty(&json!({ "value": resources }))
        .map_err(|error| Failure::from_error(&error))?;
    // Whoever reads it meanwhile reads the old one or the new one.
    let draft = path.with_extension(format!("{}.new", std::process::id()));
    let written = std::fs::write(&draft, text + "\n").and_then(|()| std::fs::rename(&draft, path));
    written.map_err(|error| Failure::new(format!("{} cannot be written: {error}", path.display())))
}
