//! `run`: the proxy, from configuration files.

use super::Failure;
use crate::check::examine;
use crate::cli::Files;
use crate::gateway::{Gateway, with_causes};
use crate::settings::Settings;
use crate::{document, logging, signals};
use discovery_core::providers::file::FileOptions;

pub(crate) async fn run(files: &Files) -> Result<(), Failure> {
    let examined = examine(&document::load(&files.config)?);
    if examined.problems.has_errors() {
        return Err(examined.problems.into());
    }
    logging::start(&examined.settings.telemetry)?;
    let gateway = Gateway::start(&examined.settings, async |merge, options| {
        let provider = FileOptions::default()
            .with_compile_options(options.clone())
            .open(&files.config)
            .await
            .map_err(|error| Failure::new(with_causes(&error)))?;
        Ok(merge.provider(provider))
    })
    .await?;
    announce(&gateway, &examined.settings).await;
    // A failure to listen for signals leaves the process to its defaults, which end it at once.
    if signals::stop().await.is_err() {
        tracing::warn!("signals cannot be received; stopping");
    }
    drain(gateway).await;
    Ok(())
}

async fn announce(gateway: &Gateway, settings: &Settings) {
    let state = gateway.ready().await;
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

/// Ends a gateway as gently as its settings allow.
pub(crate) async fn drain(gateway: Gateway) {
    eprintln!("stopping: no new connections, requests in flight may end");
    let report = signals::unless_asked_again(gateway.drain()).await;
    match report.cut {
        0 => eprintln!("stopped; every request in flight was answered"),
        cut => eprintln!("stopped; {cut} connections were cut at the deadline"),
    }
}
