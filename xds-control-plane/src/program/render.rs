//! The command that prints the resources to serve, once.

use std::io::{self, Write};

use program_kit::{Failure, Logging, print};
use serde_json::{Map, Value, json};
use tokio::time::timeout;
use xds_control_plane::pipeline::{Pipeline, PipelineStatus};
use xds_control_plane::snapshot::{ResourceType, Snapshot, Subscription};

use super::json::JsonWriter;
use super::{cli, load};

pub(super) fn run(options: &cli::Render) -> Result<(), Failure> {
    Logging::new("warn", "info,xds=debug").start()?;
    let config = load::config(&options.config)?;
    let mut pipeline = config.pipeline();
    // What was served last is not what would be served now.
    pipeline.persist = None;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::new(format!("the system gives no runtime: {error}")))?;
    let (snapshot, status) = runtime.block_on(async {
        let sources = load::sources(&config).await?;
        let pipeline = Pipeline::start(sources, pipeline);
        let mut snapshots = pipeline.snapshots();
        let ready = timeout(options.timeout, snapshots.wait_for(Option::is_some)).await;
        let snapshot = ready.ok().and_then(|ready| ready.ok()?.clone());
        // The status is shown right after what it is of.
        tokio::task::yield_now().await;
        Ok::<_, Failure>((snapshot, pipeline.status().borrow().clone()))
    })?;
    let Some(snapshot) = snapshot else {
        return Err(not_ready(&status));
    };
    print(&rendered(&snapshot, options)?)?;
    report(&status);
    Ok(())
}

fn not_ready(status: &PipelineStatus) -> Failure {
    let waiting = status
        .sources
        .iter()
        .filter(|source| !source.is_ready)
        .map(|source| {
            let why = source
                .failure
                .as_deref()
                .unwrap_or("it has not answered yet");
            format!("\n  {}: {why}", source.name)
        });
    Failure::new(format!(
        "not all sources could be read:{}",
        waiting.collect::<String>()
    ))
}

fn rendered(snapshot: &Snapshot, options: &cli::Render) -> Result<String, Failure> {
    let writer = JsonWriter::new()?;
    let via = Subscription::from(options.via);
    let of = |kind: ResourceType| -> Result<Value, Failure> {
        let set = snapshot.resources(kind);
        let resources: Result<Vec<_>, _> = set
            .iter()
            .map(|resource| writer.resource(kind, resource, via))
            .collect();
        Ok(json!({
            "versionInfo": set.version().to_string(),
            "resources": resources?,
            "typeUrl": kind.type_url(),
        }))
    };
    let document = match options.kind {
        Some(kind) => of(kind.into())?,
        None => {
            let mut all = Map::new();
            for kind in ResourceType::MAKE_BEFORE_BREAK {
                all.insert(kind.to_string(), of(kind)?);
            }
            Value::Object(all)
        }
    };
    serde_json::to_string_pretty(&document)
        .map(|text| text + "\n")
        .map_err(|error| Failure::from_error(&error))
}

/// Reports problems and warnings to people.
fn report(status: &PipelineStatus) {
    let mut out = io::stderr().lock();
    for quarantined in &status.quarantined {
        for reason in &quarantined.reasons {
            let _ = writeln!(out, "not served: {}: {reason}", quarantined.owner);
        }
    }
    for warning in &status.warnings {
        let _ = writeln!(out, "warning: {warning}");
    }
    for source in &status.sources {
        for problem in source.problems.iter() {
            let _ = writeln!(out, "warning: {}: {problem}", source.name);
        }
    }
}
