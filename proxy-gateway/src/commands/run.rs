//! `run`: the proxy, from configuration files.

use std::convert::Infallible;
use std::time::Duration;

use discovery_core::providers::file::FileOptions;
use discovery_core::{Merge, MergedState};
use proxy_model::{CompileOptions, Problems};
use proxy_runtime::server::ListeningSockets;

use super::Failure;
use crate::check::examine;
use crate::cli::Files;
use crate::gateway::{Gateway, with_causes};
use crate::handover::{HandoverError, Offer, Predecessor};
use crate::settings::Settings;
use crate::signals::Signals;
use crate::{document, logging};

/// How often the program's own settings are compared with those of the files.
const LOOK_EVERY: Duration = Duration::from_secs(5);

pub(crate) async fn run(files: &Files) -> Result<(), Failure> {
    let examined = examine(&document::load(&files.config)?);
    if examined.problems.has_errors() {
        return Err(examined.problems.into());
    }
    logging::start(&examined.settings.telemetry)?;
    let mut signals = listen()?;
    let (predecessor, mut inherited) = find_predecessor(&examined.settings).await?;
    let sources = async |merge: Merge, options: &CompileOptions| {
        let sources = &examined.settings.sources;
        let provider = FileOptions::default()
            .with_compile_options(options.clone())
            .with_section_required(sources.is_empty())
            .open(&files.config)
            .await
            .map_err(|error| Failure::new(with_causes(&error)))?;
        sources.start(merge.provider(provider), options)
    };
    let mut gateway = Gateway::start(&examined.settings, &mut inherited, sources).await?;
    // Of addresses that are listened on no more.
    drop(inherited);
    let mut has_successor = false;
    tokio::select! {
        state = gateway.serve() => {
            let mut offer = take_over(&mut gateway, &examined.settings, predecessor).await?;
            announce(&gateway, &examined.settings, &*state?);
            let successor = async {
                match &mut offer {
                    Some(offer) => offer.taken().await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = signals.stop() => {}
                () = successor => has_successor = true,
                never = follow_settings(files, &examined.settings) => match never {},
            }
        }
        () = signals.stop() => {}
    }
    drain(gateway, has_successor, &mut signals).await;
    Ok(())
}

/// The instance whose place this one takes, if there is one, and the sockets that it has.
async fn find_predecessor(
    settings: &Settings,
) -> Result<(Option<Predecessor>, ListeningSockets), Failure> {
    let found = match &settings.server.handover {
        Some(path) => Predecessor::find(path)
            .await
            .map_err(|error| Failure::new(error.to_string()))?,
        None => None,
    };
    Ok(match found {
        Some((predecessor, sockets)) => (Some(predecessor), sockets),
        None => (None, ListeningSockets::default()),
    })
}

/// Has the predecessor drain now that this instance serves, and waits for successors of its own.
async fn take_over(
    gateway: &mut Gateway,
    settings: &Settings,
    predecessor: Option<Predecessor>,
) -> Result<Option<Offer>, Failure> {
    let (Some(path), Some(sockets)) = (&settings.server.handover, gateway.take_offered()) else {
        return Ok(None);
    };
    let taken = async {
        // Whatever may be wrong with the place has to show while the predecessor is still there.
        let mut offer = Offer::open(path, sockets)?;
        if let Some(predecessor) = predecessor {
            predecessor.replace().await?;
        }
        offer.publish()?;
        Ok(offer)
    };
    let offer = taken
        .await
        .map_err(|error: HandoverError| Failure::new(error.to_string()))?;
    gateway.open_admin();
    Ok(Some(offer))
}

/// Warns when the files say something about the program itself that takes effect only with the next start.
async fn follow_settings(files: &Files, running: &Settings) -> Infallible {
    let mut noticed = running.clone();
    loop {
        tokio::time::sleep(LOOK_EVERY).await;
        let paths = files.config.clone();
        let read = move || {
            document::load(&paths).map(|document| Settings::read(&document, &mut Problems::new()))
        };
        // What cannot be read is the file provider's to report.
        let Ok(Ok(now)) = tokio::task::spawn_blocking(read).await else {
            continue;
        };
        if now == noticed {
            continue;
        }
        if now != *running {
            tracing::warn!(
                target: "proxy::config",
                "Listeners, Admin, Telemetry, Server or a section for discovery have changed; that takes effect with the next start"
            );
        }
        noticed = now;
    }
}

fn announce(gateway: &Gateway, settings: &Settings, state: &MergedState) {
    for (listener, address) in settings.listeners.iter().zip(gateway.addresses()) {
        let scheme = if listener.tls.is_some() {
            "https"
        } else {
            "http"
        };
        eprintln!("listening on {scheme}://{address} ({})", listener.name);
    }
    eprintln!(
        "serving {} routes to {} clusters; files are followed while they change",
        state.snapshot.routes().len(),
        state.snapshot.clusters().len()
    );
    if let Some(address) = gateway.admin() {
        eprintln!("admin page on http://{address}/");
    }
    eprintln!("stop with Ctrl-C; a second Ctrl-C stops at once");
}

/// Begins to listen to signals.
pub(crate) fn listen() -> Result<Signals, Failure> {
    Signals::listen().map_err(|error| Failure::new(format!("signals cannot be received: {error}")))
}

/// Ends a gateway as gently as its settings allow.
pub(crate) async fn drain(gateway: Gateway, has_successor: bool, signals: &mut Signals) {
    if has_successor {
        eprintln!("a successor serves; requests in flight may end here");
    } else {
        eprintln!("stopping: no new connections, requests in flight may end");
    }
    let report = signals
        .unless_asked_again(gateway.drain(has_successor))
        .await;
    match report.cut {
        0 => eprintln!("stopped; every request in flight was answered"),
        cut => eprintln!("stopped; {cut} connections were cut at the deadline"),
    }
}
