//! The result of a reconciliation, for programs.

use azure_loadbalancer::execute::{ReconcileError, Reconciled};
use jiff::Timestamp;
use program_kit::Failure;
use serde_json::{Map, Value, json};

/// Returns the current time in UTC (RFC 3339), to the millisecond.
pub(super) fn now() -> String {
    format!("{:.3}", Timestamp::now())
}

/// Returns the result of a reconciliation as JSON.
pub(super) fn document(report: &Reconciled) -> Value {
    let written: Vec<_> = report
        .written
        .iter()
        .map(|one| json!({ "do": one.verb, "target": one.target }))
        .collect();
    let mut services = Map::new();
    for (key, outcome) in &report.services {
        let error = report.error_of(key);
        services.insert(
            key.to_string(),
            json!({
                "loadBalancer": outcome.load_balancer,
                "ingress": outcome.ingress,
                "error": error.map(|error| Failure::from_error(&error).to_string()),
            }),
        );
    }
    let nodes = report.rejected_nodes.iter();
    let nodes = nodes.map(|(name, error)| (name.clone(), failure(&**error)));
    let others = report.other_failures.iter();
    json!({
        "time": now(),
        "done": report.is_converged() && report.errors().is_empty(),
        "written": written,
        "services": services,
        "refusedNodes": nodes.collect::<Map<_, _>>(),
        "otherFailures": others.map(|error| failure(&**error)).collect::<Vec<_>>(),
        "left": report.left,
        "warnings": report.warnings,
        "orphans": report.orphans,
        "rounds": report.rounds,
        "conflicts": report.conflicts,
        "calls": { "reads": report.calls.reads, "writes": report.calls.writes, "polls": report.calls.polls },
    })
}

/// Returns the JSON of a failed reconciliation.
pub(super) fn failed(error: &ReconcileError) -> Value {
    json!({ "time": now(), "done": false, "error": Failure::from_error(error).to_string() })
}

fn failure(error: &(dyn std::error::Error + 'static)) -> Value {
    Value::from(Failure::from_error(error).to_string())
}
