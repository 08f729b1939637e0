use std::path::Path;

use azure_loadbalancer::execute::{FollowOptions, ReconcileError, Reconciled, follow};
use azure_loadbalancer::sources::{FileSource, Source, memory};
use azure_loadbalancer::{Node, Service};
use serde_json::json;

use super::Found;
use super::cli::Apply;
use super::failure::Failure;
use super::inputs::{Wanted, config};
use super::print::print;
use super::show::{self, Style};
use super::stop;
use super::target::Azure;

/// Writes what services ask for. It is bad if one does not have it in the end.
pub(super) async fn run(options: &Apply) -> Result<Found, Failure> {
    if options.watch {
        return watch(options).await;
    }
    let wanted = Wanted::read(&options.inputs)?;
    let azure = Azure::open(&options.target, wanted.config)?;
    let done = azure.executor.reconcile(&wanted.services, &wanted.nodes);
    let report = tokio::select! {
        report = done => report.map_err(|error| Failure::from_error(&error))?,
        () = stop::asked() => return Err(Failure::new("stopped; what is written is valid, and `apply` goes on from there")),
    };
    keep(options.target.state.as_deref(), &azure)?;
    print(
        &show::reconciled(&report, Style::of_stdout())
            .map_err(|error| Failure::from_error(&error))?,
    )?;
    let is_good = report.is_converged() && report.errors().is_empty();
    Ok(if is_good { Found::Good } else { Found::Bad })
}

async fn watch(options: &Apply) -> Result<Found, Failure> {
    let azure = Azure::open(&options.target, config(&options.inputs.config)?)?;
    let mut services = FileSource::<Service>::new(&options.inputs.services);
    let mut nodes: Box<dyn Source<Node>> = match &options.inputs.nodes {
        Some(path) => Box::new(FileSource::new(path)),
        None => Box::new(memory(Vec::new()).1),
    };
    let style = Style::of_stdout();
    let mut last = None;
    let tell = |result: Result<Reconciled, ReconcileError>| {
        let text = match &result {
            Ok(report) => show::reconciled(report, style).unwrap_or_default(),
            Err(error) => format!("error: {}; it is tried again\n", show::chain(error)),
        };
        let kept = keep(options.target.state.as_deref(), &azure);
        // Somebody who has stopped reading may still want the work done.
        let _ = print(&text);
        if let Err(failure) = kept {
            tracing::error!(%failure, "the state is not kept");
        }
        last = Some(result.is_ok_and(|report| report.is_converged() && report.errors().is_empty()));
    };
    let executor = &azure.executor;
    let pace = FollowOptions::default();
    tokio::select! {
        () = follow(executor, &mut services, &mut *nodes, &pace, tell) => {}
        () = stop::asked() => {}
    }
    Ok(if last == Some(false) {
        Found::Bad
    } else {
        Found::Good
    })
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
    let draft = path.with_extension("new");
    let written = std::fs::write(&draft, text + "\n").and_then(|()| std::fs::rename(&draft, path));
    written.map_err(|error| Failure::new(format!("{} cannot be written: {error}", path.display())))
}
