use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use azure_loadbalancer::execute::{FollowOptions, Observer, ReconcileError, Reconciled, follow};
use program_kit::{Failure, Stop, print};
use serde_json::json;

use super::Found;
use super::cli::{Apply, Format, TargetArgs};
use super::followed::Followed;
use super::health::{self, Health};
use super::inputs::{self, PlanInputs, Settings};
use super::leadership::Leadership;
use super::migrate;
use super::report;
use super::show::{self, Style};
use super::target::Azure;

/// Carries out the requests of the services. Fails if one of them is not met in the end.
pub(super) async fn run(options: &Apply) -> Result<Found, Failure> {
    if options.watch {
        return watch(options).await;
    }
    if let Some(digest) = &options.migrate_to_standard {
        return migrate(options, digest).await;
    }
    let wanted = PlanInputs::read(&options.inputs, Some(&options.members)).await?;
    let azure = Azure::open(&options.target, &wanted.settings)?;
    let mut stop = Stop::listen()?;
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

/// Carries out a stage of the migration to Standard, once this program may write. Everything is read then,
/// since others may have written before.
async fn migrate(options: &Apply, digest: &str) -> Result<Found, Failure> {
    let stopped = |why: &str| {
        Failure::new(format!(
            "{why}; what is written is valid, and `plan --migrate-to-standard` shows what is left"
        ))
    };
    let mut stop = Stop::listen()?;
    let mut leadership = Leadership::new(options, Arc::default())?;
    tokio::select! {
        won = leadership.acquire() => won?,
        () = stop.asked() => return Err(Failure::new("stopped; nothing is written")),
    }
    let found = tokio::select! {
        found = stage(options, digest) => found,
        lost = leadership.keep() => Err(stopped(&lost)),
        () = stop.asked() => Err(stopped("stopped")),
    };
    leadership.release().await;
    found
}

async fn stage(options: &Apply, digest: &str) -> Result<Found, Failure> {
    let wanted = PlanInputs::read(&options.inputs, Some(&options.members)).await?;
    let azure = Azure::open(&options.target, &wanted.settings)?;
    let found = migrate::carry_out(digest, options.format, &wanted, &azure).await?;
    keep(options.target.state.as_deref(), &azure)?;
    Ok(found)
}

/// Follows changes while this program leads, and stands by otherwise.
async fn watch(options: &Apply) -> Result<Found, Failure> {
    let mut settings = inputs::settings(&options.inputs, Some(&options.members))?;
    // An invalid configuration is reported now, not only when another program has stopped.
    Azure::open(&options.target, &settings)?;
    let mut followed = Followed::open(options)?;
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
        if leadership.can_be_lost() {
            // Everything may have changed during standby.
            match inputs::again(&options.inputs, &options.members, &settings).await {
                Ok(now) => drop(now.and_then(|now| taken(&options.target, &mut settings, now))),
                Err(failure) => {
                    tracing::error!(%failure, "the configuration cannot be used; the last one stays in force");
                }
            }
            followed.renew(options);
        }
        let lost = tokio::select! {
            lost = leadership.keep() => lost,
            Err(failure) = lead(options, &mut settings, &mut followed, &health, &mut past) => {
                leadership.release().await;
                return Err(failure);
            }
            () = stop.asked() => break,
        };
        tracing::warn!(why = lost, "this program does not write any more");
        // A program that stands by polls nothing.
        followed.renew(options);
    }
    leadership.release().await;
    Ok(past.last.unwrap_or(Found::Good))
}

/// The results of the reconciliations so far.
#[derive(Default)]
struct Past {
    last: Option<Found>,
    /// The lines that were printed last.
    shown: Vec<String>,
}

impl Past {
    /// Returns the new lines of a result with the time. Lines that were printed last time and still hold are
    /// omitted, except for writes.
    fn news(&mut self, text: &str) -> String {
        let now = report::now();
        let lines: Vec<_> = text.lines().map(str::to_owned).collect();
        let is_news = |line: &&String| line.contains("written:") || !self.shown.contains(line);
        let news: String = lines
            .iter()
            .filter(is_news)
            .map(|line| format!("{now} {line}\n"))
            .collect();
        self.shown = lines;
        news
    }
}

/// Follows services and nodes with each new configuration, until it is dropped.
async fn lead(
    options: &Apply,
    settings: &mut Settings,
    followed: &mut Followed,
    health: &Health,
    past: &mut Past,
) -> Result<std::convert::Infallible, Failure> {
    let mut azure = Azure::open(&options.target, settings)?;
    let mut pace = FollowOptions::default();
    pace.resync = Duration::from_secs(options.resync);
    loop {
        let mut told = ApplyReport {
            azure: &azure,
            state: options.target.state.as_deref(),
            format: options.format,
            health,
            statuses: followed.statuses.as_mut(),
            past,
        };
        let (services, nodes) = (&mut followed.services, &mut followed.nodes);
        let next: Settings = tokio::select! {
            () = follow(&azure.executor, services, nodes, &pace, &mut told) => continue,
            next = inputs::changed(&options.inputs, &options.members, settings) => next,
        };
        if let Some(mut opened) = taken(&options.target, settings, next) {
            opened.executor = opened.executor.continuing(&azure.executor);
            azure = opened;
            tracing::warn!("the configuration has changed and is in force");
        }
        followed.renew(options);
    }
}

/// Takes a new configuration if it is valid.
fn taken(target: &TargetArgs, settings: &mut Settings, next: Settings) -> Option<Azure> {
    match Azure::open(target, &next) {
        Ok(azure) => {
            *settings = next;
            Some(azure)
        }
        Err(failure) => {
            tracing::error!(%failure, "the configuration has changed and cannot be used; the last one stays in force");
            settings.pass_over(next);
            None
        }
    }
}

/// Prints the result of each reconciliation, keeps the state, and has statuses written.
struct ApplyReport<'a> {
    azure: &'a Azure,
    state: Option<&'a Path>,
    format: Format,
    health: &'a Health,
    statuses: Option<&'a mut Box<dyn Observer>>,
    past: &'a mut Past,
}

impl ApplyReport<'_> {
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
        self.past.news(&text)
    }
}

#[async_trait]
impl Observer for ApplyReport<'_> {
    async fn reconciled(&mut self, result: &Result<Reconciled, ReconcileError>) -> bool {
        // A closed output does not stop the work.
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

/// Writes the resulting resources to the file.
fn keep(path: Option<&Path>, azure: &Azure) -> Result<(), Failure> {
    let (Some(path), Some(emulator)) = (path, &azure.emulator) else {
        return Ok(());
    };
    let resources = emulator.with(|machine| machine.resources());
    let text = serde_json::to_string_pretty(&json!({ "value": resources }))
        .map_err(|error| Failure::from_error(&error))?;
    // A rename replaces the file atomically, so that readers see the old or the new content.
    let draft = path.with_extension(format!("{}.new", std::process::id()));
    let written = std::fs::write(&draft, text + "\n").and_then(|()| std::fs::rename(&draft, path));
    written.map_err(|error| Failure::new(format!("{} cannot be written: {error}", path.display())))
}

#[cfg(test)]
mod tests {
    use super::super::cli::{Credentials, Inputs, MembersArgs};
    use super::*;

    /// A program that begins to lead again uses the last valid configuration.
    #[tokio::test(start_paused = true)]
    async fn a_configuration_that_cannot_be_used_replaces_none_that_can() {
        let directory = tempfile::tempdir().unwrap();
        let config = directory.path().join("azure.yaml");
        let write = |cloud: &str| {
            let text = format!(
                "subscriptionId: s\nresourceGroup: g\nlocation: westeurope\nvnetName: net\ncloud: {cloud}\n"
            );
            std::fs::write(&config, text).unwrap();
        };
        let inputs = Inputs {
            config: config.clone(),
            services: None,
            kubernetes: None,
        };
        let members = MembersArgs {
            nodes: None,
            nodes_from: None,
            nodes_cluster: None,
            remove_orphans: false,
            delete_left_addresses: false,
        };
        let target = TargetArgs {
            endpoint: None,
            resource: None,
            state: None,
            credentials: Credentials::None,
            ca_file: None,
        };
        write("AzurePublicCloud");
        let mut settings = inputs::settings(&inputs, Some(&members)).unwrap();
        write("AzureNowhereCloud");
        let next = inputs::again(&inputs, &members, &settings).await.unwrap();
        assert!(taken(&target, &mut settings, next.unwrap()).is_none());
        assert!(Azure::open(&target, &settings).is_ok());
        // It is reported once.
        let next = inputs::again(&inputs, &members, &settings).await.unwrap();
        assert!(next.is_none());
        write("AzureChinaCloud");
        let next = inputs::again(&inputs, &members, &settings).await.unwrap();
        assert!(taken(&target, &mut settings, next.unwrap()).is_some());
    }

    #[test]
    fn only_news_is_printed_and_every_write() {
        let mut past = Past::default();
        let mut printed = |text: &str| {
            let news = past.news(text);
            let lines = news.lines().map(|line| {
                let (time, line) = line.split_once(' ').unwrap();
                assert!(time.ends_with('Z'), "{time}");
                line.to_owned()
            });
            lines.collect::<Vec<_>>()
        };
        let usual = "warning: x\nshop/web: 20.0.0.1\n";
        assert_eq!(printed(usual), ["warning: x", "shop/web: 20.0.0.1"]);
        assert!(printed(usual).is_empty());
        let moved = "written: put a\nwarning: x\nshop/web: 20.0.0.2\n";
        assert_eq!(printed(moved), ["written: put a", "shop/web: 20.0.0.2"]);
        assert_eq!(printed(moved), ["written: put a"]);
        assert_eq!(printed(usual), ["shop/web: 20.0.0.1"]);
    }
}
