//! Case ids (`D01`) are those of the table of YARP's behaviour that these tests follow.

#![expect(
    clippy::needless_pass_by_value,
    reason = "tables of cases read better without `&`"
)]

use serde_json::{Value, json};

use crate::compiled::{
    AvailabilityPolicy, BalancingPolicy, BodyLimit, ClusterIndex, RouteTarget, Scheme,
};
use crate::config::ProxyConfig;
use crate::{ClusterId, CompileOptions, Problems, Severity, Snapshot};

fn config(value: Value) -> ProxyConfig {
    match serde_json::from_value(value) {
        Ok(config) => config,
        Err(error) => panic!("{error}"),
    }
}

fn compile(value: Value) -> Result<(Snapshot, Problems), Problems> {
    Snapshot::compile(config(value), &options())
}

fn options() -> CompileOptions {
    CompileOptions::default()
}

fn route(route: Value) -> Value {
    let mut route = route;
    let fields = route.as_object_mut().unwrap();
    fields
        .entry("Match")
        .or_insert_with(|| json!({ "Path": "/" }));
    json!({ "Routes": { "r": route } })
}

fn matching(criteria: Value) -> Value {
    json!({ "Routes": { "r": { "Match": criteria } } })
}

fn cluster(cluster: Value) -> Value {
    json!({ "Clusters": { "c": cluster } })
}

fn destination(destination: Value) -> Value {
    cluster(json!({ "Destinations": { "d": destination } }))
}

#[track_caller]
fn accepted(value: Value) -> Snapshot {
    let (snapshot, problems) = compile(value.clone()).unwrap_or_else(|e| panic!("{value}\n{e}"));
    assert!(problems.is_empty(), "{value}\n{problems}");
    snapshot
}

/// Severity, code and place of each problem.
fn found(problems: &Problems) -> Vec<(Severity, &str, &str)> {
    let parts = problems.iter().map(|p| (p.severity, &*p.code, &*p.pointer));
    parts.collect()
}

#[track_caller]
fn rejected(value: Value, code: &str, pointer: &str) {
    rejected_with(value, &options(), code, pointer);
}

#[track_caller]
fn rejected_with(value: Value, options: &CompileOptions, code: &str, pointer: &str) {
    match Snapshot::compile(config(value.clone()), options) {
        Ok(_) => panic!("accepted {value}"),
        Err(problems) => assert_eq!(
            found(&problems),
            [(Severity::Error, code, pointer)],
            "{value}\n{problems}"
        ),
    }
}

#[track_caller]
fn warned(value: Value, code: &str, pointer: &str) -> Snapshot {
    let (snapshot, problems) = compile(value.clone()).unwrap_or_else(|e| panic!("{value}\n{e}"));
    assert_eq!(
        found(&problems),
        [(Severity::Warning, code, pointer)],
        "{value}\n{problems}"
    );
    snapshot
}

mod affinity;
mod agents;
mod chosen;
mod clusters;
mod conflicts;
mod connectors;
mod destinations;
mod expressions;
mod extensions;
mod metadata;
mod partitions;
mod replies;
mod routes;
mod tls;
mod web_proxies;
