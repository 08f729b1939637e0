//! The section `Policies` of a gateway's files, as far as it matters to Envoys: their names, and time limits.

use std::path::PathBuf;
use std::sync::Arc;

use discovery_core::ProviderState;
use discovery_core::providers::file::{FileError, FileOptions, Layers, read_document};
use proxy_model::config::{PolicyConfig, PolicyConfigs, PolicyKind};
use proxy_model::json::{Layered, Node, ObjectReader, read_config};
use proxy_model::{CompileOptions, Problem, Problems, Severity, TimeSpan, pointer_to, same_id};
use serde_json::Value;
use tokio::sync::watch;

use crate::bridge::{self, BridgeOptions, to_envoy};

const SECTION: &str = "Policies";

/// The section with routes and clusters.
const ROUTES: &str = "ReverseProxy";

/// The options of files with routes, clusters and policies.
pub(super) fn file_options() -> FileOptions {
    FileOptions::default().with_policies(read)
}

/// Reads the names of the policies. The gateway checks the settings of most; the bridge cannot express them.
fn read(document: &Layered, problems: &mut Problems) -> PolicyConfigs {
    let mut policies = PolicyConfigs::default();
    let Some(section) = document.node.get(SECTION) else {
        return policies;
    };
    let pointer = document.node.spelled(&pointer_to("", SECTION));
    ObjectReader::read(section, &pointer, problems, |section| {
        section.allow_unknown();
        for kind in PolicyKind::ALL {
            section.entries(kind.section(), |name, node, pointer, problems| {
                let timeout = match kind {
                    PolicyKind::Timeout => timeout(node, pointer, problems),
                    _ => None,
                };
                policies.insert(PolicyConfig {
                    kind,
                    name: Arc::from(name),
                    settings: Value::Null,
                    timeout,
                });
                Some(())
            });
        }
    });
    policies
}

fn timeout(node: &Node, pointer: &str, problems: &mut Problems) -> Option<TimeSpan> {
    ObjectReader::read(node, pointer, problems, |policy| {
        policy.time_span("Timeout")
    })
    .flatten()
}

/// Returns the names that discovered routes may use without an error. Envoy closes or opens them as it does the
/// routes of the files.
pub(super) fn names(files: &watch::Receiver<Arc<ProviderState>>) -> CompileOptions {
    let state = files.borrow();
    let of = |kind| {
        let policies = state
            .config
            .iter()
            .flat_map(|config| config.policies.iter());
        let is_reserved = |name: &str| {
            let mut reserved = ["Anonymous", "Default", "Disable"].into_iter();
            reserved.any(|reserved| same_id(reserved, name))
        };
        policies
            .filter(|policy| policy.kind == kind && !is_reserved(&policy.name))
            .map(|policy| Arc::clone(&policy.name))
            .collect::<Vec<_>>()
    };
    CompileOptions::default()
        .with_authorization_policies(of(PolicyKind::Authorization))
        .with_cors_policies(of(PolicyKind::Cors))
        .with_rate_limiter_policies(of(PolicyKind::RateLimiter))
        .with_timeout_policies(of(PolicyKind::Timeout))
}

/// Reads and converts files. Returns all problems.
pub(super) fn check(files: &[PathBuf], options: &BridgeOptions) -> Result<Problems, FileError> {
    let document = read_document(&Layers::of_files(files))?;
    let mut problems = Problems::new();
    let policies = read(&document, &mut problems);
    let Some(section) = document.node.get(ROUTES) else {
        let message = format!("there is no section `{ROUTES}`");
        problems.push(Problem::error("", "missing_section", message));
        return Ok(problems);
    };
    let pointer = document.node.spelled(&pointer_to("", ROUTES));
    let merged = document
        .problems
        .iter()
        .filter(|problem| problem.pointer.starts_with(&pointer));
    problems.extend(merged.cloned());
    let mut config = read_config(section, &pointer, &mut problems);
    config.policies = Arc::new(policies);
    let (snapshot, found, _) = bridge::compiled(&Arc::new(config));
    problems.extend(found.under(&pointer));
    let bridged = to_envoy("file", &snapshot, options).problems;
    for mut problem in bridged.under(&pointer) {
        // The file is served, if only with 503 for some routes.
        problem.severity = Severity::Warning;
        problems.push(problem);
    }
    document.origins.place(&mut problems);
    Ok(problems)
}
