//! The migration from Basic to Standard: its stages, and the execution of one.

use std::fmt::Write;

use azure_loadbalancer::execute::ReconcileError;
use azure_loadbalancer::plan::{Migration, StageKind};
use program_kit::{Failure, print};
use serde_json::json;

use super::Found;
use super::cli::{Format, PlanArgs};
use super::inputs::PlanInputs;
use super::show::{self, Style};
use super::target::Azure;

fn unread(error: &ReconcileError) -> Failure {
    Failure::from_error(error)
}

/// Shows the stages. Fails if something prevents the migration.
pub(super) async fn show(
    options: &PlanArgs,
    wanted: &PlanInputs,
    azure: &Azure,
) -> Result<Found, Failure> {
    let executor = &azure.executor;
    let migration = executor
        .migration(&wanted.services, &wanted.nodes)
        .await
        .map_err(|error| unread(&error))?;
    let text = match options.format {
        Format::Text => {
            text(&migration, Style::of_stdout()).map_err(|error| Failure::from_error(&error))?
        }
        Format::Json => {
            serde_json::to_string_pretty(&migration).map_err(|error| Failure::from_error(&error))?
                + "\n"
        }
    };
    print(&text)?;
    Ok(
        match (migration.obstacles.is_empty(), migration.stages.is_empty()) {
            (false, _) => Found::Bad,
            (true, false) if options.detailed_exitcode => Found::Pending,
            (true, _) => Found::Good,
        },
    )
}

/// Carries out the next stage, if it is the one with this digest.
pub(super) async fn carry_out(
    digest: &str,
    format: Format,
    wanted: &PlanInputs,
    azure: &Azure,
) -> Result<Found, Failure> {
    let executor = &azure.executor;
    let migration = executor
        .migration(&wanted.services, &wanted.nodes)
        .await
        .map_err(|error| unread(&error))?;
    if !migration.obstacles.is_empty() {
        let all = migration.obstacles.join("; ");
        return Err(Failure::new(format!(
            "nothing is written: {}",
            show::plain(&all)
        )));
    }
    let Some(stage) = migration.stages.first() else {
        return Err(Failure::new("nothing is written: no stage is left"));
    };
    if stage.digest() != digest {
        return Err(Failure::new(format!(
            "nothing is written: the next stage is not the one with digest {digest:?}, something has changed; look at `plan --migrate-to-standard` again"
        )));
    }
    let (is_done, error) = match (stage.kind, stage.writes.stages.first()) {
        // The last stage is an ordinary reconciliation, which plans again from current reads.
        (StageKind::BuildUp, _) | (_, None) => {
            let report = executor
                .reconcile(&wanted.services, &wanted.nodes)
                .await
                .map_err(|error| unread(&error))?;
            let errors: Vec<_> = report
                .errors()
                .iter()
                .map(|(key, error)| format!("{key}: {}", Failure::from_error(error)))
                .collect();
            (
                report.is_converged() && errors.is_empty(),
                errors.join("; "),
            )
        }
        (_, Some(plan)) => {
            let executed = executor.execute(plan).await;
            let error = executed
                .error()
                .map(|error| Failure::from_error(&**error).to_string());
            (executed.is_done(), error.unwrap_or_default())
        }
    };
    let left = migration.stages.len() - usize::from(is_done);
    let warnings = &migration.warnings;
    let document = json!({ "stage": stage.kind, "done": is_done, "error": error, "stagesLeft": left, "warnings": warnings });
    print(&match format {
        Format::Json => format!("{document}\n"),
        Format::Text => said(stage.kind, is_done, &error, left) + &warned(warnings),
    })?;
    Ok(if is_done { Found::Good } else { Found::Bad })
}

fn said(kind: StageKind, is_done: bool, error: &str, left: usize) -> String {
    match (is_done, left) {
        (true, 0) => format!("done: {kind}. Everything is of sku Standard.\n"),
        (true, left) => format!(
            "done: {kind}. Left: {left}; `plan --migrate-to-standard` shows the next one.\n"
        ),
        (false, _) => format!(
            "not done: {kind}: {}. `plan --migrate-to-standard` shows what is left.\n",
            show::plain(error)
        ),
    }
}

fn warned(warnings: &[String]) -> String {
    let lines = warnings
        .iter()
        .map(|warning| format!("warning: {}\n", show::plain(warning)));
    lines.collect()
}

fn text(migration: &Migration, style: Style) -> Result<String, std::fmt::Error> {
    let mut text = String::new();
    let count = migration.stages.len();
    for (index, stage) in migration.stages.iter().enumerate() {
        let kind = stage.kind;
        writeln!(text, "Stage {} of {count}: {kind}", index + 1)?;
        writeln!(text, "  traffic: {}", kind.traffic())?;
        writeln!(text, "  way back: {}", kind.way_back())?;
        text.push_str(&show::writes(&stage.writes, style)?);
        text.push('\n');
    }
    text.push_str(&warned(&migration.warnings));
    for obstacle in &migration.obstacles {
        writeln!(text, "blocked by: {}", show::plain(obstacle))?;
    }
    match (migration.stages.first(), migration.obstacles.is_empty()) {
        (None, true) => text.push_str("Everything is of sku Standard.\n"),
        (Some(stage), true) => writeln!(
            text,
            "The next stage is carried out by `apply --migrate-to-standard {}` with the same options.",
            stage.digest()
        )?,
        (_, false) => text.push_str("Nothing is done until these are resolved.\n"),
    }
    Ok(text)
}
