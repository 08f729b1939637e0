//! `run`: the proxy, from configuration files.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use discovery_core::providers::file::FileOptions;
use discovery_core::{Merge, MergedState};
use program_kit::{Failure, Signals, say};
use proxy_model::json::Origins;
use proxy_model::{CompileOptions, Problem, Problems, Severity};
use tokio::sync::Notify;

use super::{load, some, unusable};
use crate::check::{examine, policies};
use crate::cli::Files;
use crate::document::Document;
use crate::error_pages::FollowedPages;
use crate::faults::Faults;
use crate::gateway::Gateway;
use crate::hot_restart::{HotRestartError, Offer, Predecessor};
use crate::log_filter::LogFilter;
use crate::service_manager::{self, Message};
use crate::settings::Settings;
use crate::{logging, open_files, preflight};

/// The interval at which the running program's own settings are compared with the files.
const LOOK_EVERY: Duration = Duration::from_secs(5);

pub(crate) async fn run(files: &Files) -> Result<(), Failure> {
    let document = Document::of(files)?;
    let layered = load(&document)?;
    let mut examined = examine(&layered);
    let of_machine = preflight::files(&examined.settings, &layered.origins);
    if examined.problems.has_errors() || of_machine.has_errors() {
        let of_machine = preflight::not_said_yet(of_machine, &examined.problems);
        examined.problems.extend(of_machine);
        // Where lines are wanted as JSON, this one is as well. If the section itself is wrong, the problems say so.
        let _log = logging::start(&examined.settings.telemetry);
        return Err(unusable(&examined.problems));
    }
    // The proxy and its sources log what they start with in spite of it.
    drop((layered, of_machine));
    let telemetry = &examined.settings.telemetry;
    let log = LogFilter::new(logging::start(telemetry)?, telemetry.log_filter.clone());
    say(&document.described());
    // The follower of the files logs the others.
    for problem in document.problems() {
        tracing::warn!(target: "proxy::config", "{problem}");
    }
    open_files::raise_limit();
    // A signal that arrives during the start is handled after it.
    let mut signals = listen()?;
    let (of_routes, of_settings) = (signals.reload(), signals.reload());
    let (predecessor, mut inherited) = find_predecessor(&examined.settings).await?;
    service_manager::add_sockets(&examined.settings, &mut inherited)?;
    let sources = async |merge: Merge, options: &CompileOptions| {
        let sources = &examined.settings.sources;
        let provider = FileOptions::default()
            .with_compile_options(options.clone())
            .with_section_required(sources.is_empty())
            .with_policies(policies)
            .with_reload(of_routes)
            .open_layers(document.layers.clone())
            .await
            .map_err(|error| Failure::from_error(&error))?;
        sources.start(merge.provider(provider), options)
    };
    let has_sources = !examined.settings.sources.is_empty();
    let started = Gateway::start(
        &examined.settings,
        &mut inherited,
        has_sources,
        &log,
        sources,
    );
    let mut gateway = started.await?;
    gateway.reopen_logs_on(signals.reopen());
    // The remaining sockets belong to addresses that are no longer configured.
    drop(inherited);
    let ended = tokio::select! {
        ended = serve(&mut gateway, document, &examined.settings, (&log, &of_settings), predecessor) => Some(ended),
        () = signals.stop() => None,
    };
    service_manager::notify(Message::Stopping);
    let (has_successor, failure) = match ended {
        None => (false, None),
        Some(Ok(())) => (true, None),
        Some(Err(NotTaken { error, is_served })) => (is_served, Some(error)),
    };
    // Also after a failed takeover: connections that were accepted by then are served.
    drain(gateway, has_successor, &mut signals).await;
    failure.map_or(Ok(()), Err)
}

/// Serves from this instance's turn until a successor serves.
///
/// Cancel safe.
async fn serve(
    gateway: &mut Gateway,
    document: Document,
    settings: &Settings,
    (log, reload): (&LogFilter, &Notify),
    predecessor: Option<Predecessor>,
) -> Result<(), NotTaken> {
    let is_served = match &predecessor {
        // The predecessor serves everything meanwhile, unless it ends.
        Some(predecessor) => {
            let confirmed = gateway.until_confirmed(predecessor).await;
            confirmed.map_err(|error| NotTaken {
                error: not_taken(&error),
                is_served: true,
            })?
        }
        None => false,
    };
    // Configuration in files is available at once.
    let is_early = !is_served && !settings.sources.is_empty() && !gateway.is_ready();
    if !is_early {
        gateway.ready().await;
    }
    let mut offer = take_over(gateway, settings, predecessor).await?;
    say_listening(gateway, settings);
    say_admin(gateway);
    if is_early {
        say(
            "until every source has given a configuration, other requests than those of known routes get 503",
        );
    }
    let faults = gateway.faults().clone();
    let pages = gateway.followed_pages();
    let work = async {
        let state = gateway.ready().await;
        announce(&state);
        say("stop with Ctrl-C; a second Ctrl-C stops at once");
        service_manager::notify(Message::Ready);
        follow_settings(Arc::new(document), settings, (log, reload), &faults, pages).await
    };
    let successor = async {
        match &mut offer {
            Some(offer) => offer.taken().await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        never = work => match never {},
        () = successor => Ok(()),
    }
}

/// The reason why this instance does not serve.
struct NotTaken {
    error: Failure,
    /// True if another instance has the sockets.
    is_served: bool,
}

/// Returns the instance to replace, if there is one, and its sockets.
async fn find_predecessor(
    settings: &Settings,
) -> Result<(Option<Predecessor>, Vec<std::net::TcpListener>), Failure> {
    let found = match &settings.server.handover {
        Some(path) => Predecessor::find(path)
            .await
            .map_err(|error| Failure::new(error.to_string()))?,
        None => None,
    };
    Ok(match found {
        Some((predecessor, sockets)) => (Some(predecessor), sockets),
        None => (None, Vec::new()),
    })
}

/// Serves, lets the predecessor drain, and waits for its own successors.
async fn take_over(
    gateway: &mut Gateway,
    settings: &Settings,
    predecessor: Option<Predecessor>,
) -> Result<Option<Offer>, NotTaken> {
    // A predecessor keeps serving, whatever fails here.
    let mut is_served = predecessor.is_some();
    let taken = async {
        // Problems with the socket's path must show before any connection is accepted.
        let mut offer = match (&settings.server.handover, gateway.take_offered()) {
            (Some(path), Some(sockets)) => {
                Some(Offer::open(path, sockets).map_err(|error| not_taken(&error))?)
            }
            _ => None,
        };
        gateway.serve()?;
        if let Some(predecessor) = predecessor {
            let replaced = predecessor.replace().await;
            let inherited = replaced.map_err(|error| not_taken(&error))?;
            is_served = false;
            if let Some(offer) = &mut offer {
                offer.keep(inherited);
            }
        }
        if let Some(offer) = &mut offer {
            offer.publish().map_err(|error| not_taken(&error))?;
        }
        gateway.open_admin();
        Ok(offer)
    };
    let taken = taken.await;
    taken.map_err(|error| NotTaken { error, is_served })
}

fn not_taken(error: &HotRestartError) -> Failure {
    Failure::new(error.to_string())
}

/// The warning about changes of settings that are read at the start alone.
const RESTART_NEEDED: &str = "Listeners, Admin, Telemetry (except LogFilter), Server (except ErrorPages), Policies.Discovered or a section for discovery have changed; that takes effect with the next start";

/// The problems of settings that do not serve yet are listed under this name.
const NEXT_START: &str = "next start";

/// Applies changes of the log filter and of the error pages, and warns about those that take effect only with the next
/// start.
async fn follow_settings(
    document: Arc<Document>,
    running: &Settings,
    (log, reload): (&LogFilter, &Notify),
    faults: &Faults,
    mut pages: FollowedPages,
) -> Infallible {
    let mut running = running.clone();
    let mut noticed = running.clone();
    loop {
        next_look(reload).await;
        let document = Arc::clone(&document);
        let (serving, known) = (running.clone(), noticed.clone());
        let read = move || look(&document, &serving, &known);
        let found = tokio::task::spawn_blocking(read).await.ok().flatten();
        let current = found.as_ref().map_or(&noticed, |(now, _)| now);
        pages.look(current.server.error_pages.clone()).await;
        let Some((now, of_next_start)) = found else {
            continue;
        };
        let is_pending = !of_next_start.is_empty();
        faults.set(NEXT_START, of_next_start);
        // Every change is logged once.
        if now == noticed {
            continue;
        }
        if now.telemetry.log_filter != noticed.telemetry.log_filter {
            log.configure(now.telemetry.log_filter.clone());
            running
                .telemetry
                .log_filter
                .clone_from(&now.telemetry.log_filter);
        }
        if is_pending {
            tracing::warn!(target: "proxy::config", "{RESTART_NEEDED}");
        }
        noticed = now;
    }
}

/// Waits until it is time to look at the files, or until they are wanted at once.
async fn next_look(reload: &Notify) {
    tokio::select! {
        () = tokio::time::sleep(LOOK_EVERY) => {}
        () = reload.notified() => {}
    }
}

/// Reads the settings of the files, and the problems that the next start with them has. `None`: the files are
/// rejected, which the file provider reports.
fn look(
    document: &Document,
    running: &Settings,
    noticed: &Settings,
) -> Option<(Settings, Problems)> {
    let layered = document.load().ok()?;
    let now = Settings::read(&layered.node, &mut Problems::new());
    // Settings that were changed back need no restart.
    let mut applied = now.clone();
    applied
        .telemetry
        .log_filter
        .clone_from(&running.telemetry.log_filter);
    applied
        .server
        .error_pages
        .clone_from(&running.server.error_pages);
    let is_running = applied == *running;
    // A version with an error in any section is rejected as a whole, as at the start.
    if now != *noticed && examine(&layered).problems.has_errors() {
        return None;
    }
    let problems = match is_running {
        true => Problems::new(),
        false => of_next_start(&now, &layered.origins),
    };
    Some((now, problems))
}

/// Returns a warning that a restart is needed, and the problems that would prevent it.
fn of_next_start(settings: &Settings, origins: &Origins) -> Problems {
    let mut problems = Problems::from(Problem::warning("", "restart_needed", RESTART_NEEDED));
    let failing = preflight::files(settings, origins).into_iter();
    let failing = failing.filter(|problem| problem.severity == Severity::Error);
    problems.extend(preflight::as_warnings(failing.collect()));
    problems
}

fn say_listening(gateway: &Gateway, settings: &Settings) {
    for (listener, address) in settings.listeners.iter().zip(gateway.addresses()) {
        let scheme = if listener.tls.is_some() {
            "https"
        } else {
            "http"
        };
        say(&format!(
            "listening on {scheme}://{address} ({})",
            listener.name
        ));
    }
}

fn say_admin(gateway: &Gateway) {
    if let Some(address) = gateway.admin() {
        let scheme = match gateway.has_secure_admin() {
            true => "https",
            false => "http",
        };
        say(&format!("admin page on {scheme}://{address}/"));
    }
}

fn announce(state: &MergedState) {
    say(&format!(
        "serving {} to {}; files are followed while they change",
        some(state.snapshot.routes().len(), "route"),
        some(state.snapshot.clusters().len(), "cluster")
    ));
}

/// Begins to receive signals.
fn listen() -> Result<Signals, Failure> {
    let signals = Signals::listen().and_then(Signals::with_others_handled);
    signals.map_err(|error| Failure::new(format!("signals cannot be received: {error}")))
}

/// Drains a gateway within the limits of its settings.
async fn drain(gateway: Gateway, has_successor: bool, signals: &mut Signals) {
    if has_successor {
        say("a successor serves; requests in flight may end here");
    } else {
        say("stopping: no new connections, requests in flight may end");
    }
    let report = signals
        .stopping_at_once(
            "stopped at once; requests in flight were cut",
            gateway.drain(has_successor),
        )
        .await;
    match report.cut {
        0 => say("stopped; every request in flight was answered"),
        cut => say(&format!(
            "stopped; {cut} connections were cut at the deadline"
        )),
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::Instant;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn settings_are_read_at_once_when_they_are_wanted() {
        let (reload, begin) = (Notify::new(), Instant::now());
        reload.notify_one();
        next_look(&reload).await;
        assert_eq!(begin.elapsed(), Duration::ZERO);
        next_look(&reload).await;
        assert_eq!(begin.elapsed(), LOOK_EVERY);
    }
}
