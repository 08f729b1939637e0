//! `discover`: the results of the configured providers, polled once.

use std::fmt;

use discovery_core::providers::file::FileOptions;
use discovery_core::{ConfigProvider, ProviderState};
use program_kit::{Failure, escape_controls};
use proxy_model::Problems;
use proxy_model::config::{ProxyConfig, RouteConfig, RouteMatch};
use serde::Serialize;

use super::{load, print, print_json, some, unusable};
use crate::check::{compile_options, examine, policies};
use crate::cli::{Discover, Format};
use crate::document::Document;
use crate::sources::{Answer, NotServed};

/// The results of the providers.
#[derive(Serialize)]
struct Found {
    providers: Vec<ProviderFound>,
}

#[derive(Serialize)]
struct ProviderFound {
    name: String,
    #[serde(rename = "ReverseProxy")]
    config: Option<ProxyConfig>,
    diagnostics: Problems,
    /// The health reports that the source would get about its services. A file takes none.
    health_reports: Vec<serde_json::Value>,
    /// The parts of the source that are not served, with the reasons.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    not_served: Vec<NotServed>,
    /// The error. `None` if the provider has responded.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

pub(crate) async fn discover(options: &Discover) -> Result<(), Failure> {
    let document = Document::of(&options.files)?;
    let examined = examine(&load(&document)?);
    if examined.problems.has_errors() {
        return Err(unusable(&examined.problems));
    }
    let file = FileOptions::default()
        .with_watch(false)
        .with_section_required(false)
        .with_compile_options(compile_options())
        .with_policies(policies)
        .open_layers(document.layers.clone())
        .await
        .map_err(|error| Failure::from_error(&error))?;
    let mut found = Found {
        providers: vec![of_provider(file.name(), &file.state())],
    };
    for answer in examined.settings.sources.ask(&compile_options()).await? {
        found.providers.push(of_source(answer));
    }
    match options.format {
        Format::Json => print_json(&found)?,
        Format::Text => print(readable(&found).trim_end())?,
    }
    if found
        .providers
        .iter()
        .any(|provider| provider.error.is_some())
    {
        // The output contains the errors already.
        return Err(Failure::silent());
    }
    Ok(())
}

fn of_provider(name: &str, state: &ProviderState) -> ProviderFound {
    ProviderFound {
        name: name.to_owned(),
        config: state.config.as_deref().cloned(),
        diagnostics: state.problems.clone(),
        health_reports: Vec::new(),
        not_served: Vec::new(),
        error: None,
    }
}

fn of_source(answer: Answer) -> ProviderFound {
    let state = &answer.once.state;
    let failure = answer.once.report.is_none();
    ProviderFound {
        error: failure.then(|| {
            let error = state.status.last_error.as_ref();
            error.map_or_else(|| "no answer".to_owned(), |error| error.message.clone())
        }),
        health_reports: answer.health_reports,
        not_served: answer.not_served,
        ..of_provider(&answer.source, state)
    }
}

/// Returns the match of a route in one line.
fn takes(matches: &RouteMatch) -> String {
    let mut parts = Vec::new();
    parts.extend(matches.methods.as_ref().map(|methods| methods.join(" ")));
    parts.extend(matches.hosts.as_ref().map(|hosts| hosts.join(", ")));
    parts.push(
        matches
            .path
            .clone()
            .unwrap_or_else(|| "every path".to_owned()),
    );
    for header in matches.headers.iter().flatten() {
        let values = header.values.as_deref().unwrap_or_default();
        parts.push(format!("{}: {}", header.name, values.join(" or ")));
    }
    for parameter in matches.query_parameters.iter().flatten() {
        let values = parameter.values.as_deref().unwrap_or_default();
        parts.push(format!("?{}={}", parameter.name, values.join(" or ")));
    }
    parts.join("  ")
}

/// Describes the destination of a route's requests.
fn leads_to(route: &RouteConfig) -> String {
    if let Some(shares) = &route.weighted_clusters {
        let shares = shares
            .iter()
            .map(|to| format!("{} (weight {})", to.cluster_id, to.weight));
        return shares.collect::<Vec<_>>().join(", ");
    }
    if let Some(partitioned) = &route.partitioned_clusters {
        let mut clusters = Vec::new();
        for partition in &partitioned.partitions {
            let cluster = partition.cluster_id.as_str();
            // Several partitions may share a cluster.
            if !clusters.contains(&cluster) {
                clusters.push(cluster);
            }
        }
        return format!("{} (by key)", clusters.join(", "));
    }
    let cluster = route.cluster_id.as_ref();
    cluster.map_or("nowhere", |id| id.as_str()).to_owned()
}

/// Lines for a person. Names from a registry neither begin a line nor move the cursor.
#[derive(Default)]
struct Lines(String);

impl Lines {
    fn push(&mut self, line: fmt::Arguments<'_>) {
        // Names come from other systems, and control characters in them could change the terminal.
        self.0.push_str(&escape_controls(&line.to_string()));
        self.0.push('\n');
    }
}

fn readable(found: &Found) -> String {
    let mut text = Lines::default();
    for provider in &found.providers {
        let (routes, clusters) = provider.config.as_ref().map_or((0, 0), |config| {
            (config.routes.len(), config.clusters.len())
        });
        text.push(format_args!(
            "{}: {}, {}",
            provider.name,
            some(routes, "route"),
            some(clusters, "cluster")
        ));
        for (id, route) in provider.config.iter().flat_map(|config| &config.routes) {
            let takes = takes(&route.r#match);
            let leads_to = leads_to(route);
            text.push(format_args!("  route {id}: {takes} → {leads_to}"));
        }
        for (id, cluster) in provider.config.iter().flat_map(|config| &config.clusters) {
            text.push(format_args!("  cluster {id}:"));
            for (id, destination) in &cluster.destinations {
                let weight = destination.weight.filter(|weight| *weight != 1);
                let weight = weight.map_or_else(String::new, |weight| format!(", weight {weight}"));
                text.push(format_args!("    {id} {}{weight}", destination.address));
            }
        }
        for problem in &provider.diagnostics {
            text.push(format_args!("  {problem}"));
        }
        for left_out in &provider.not_served {
            text.push(format_args!(
                "  not served {}: {}",
                left_out.name,
                left_out.reasons.join("; ")
            ));
        }
        for report in &provider.health_reports {
            let said = |key| report["health"][key].as_str().unwrap_or_default();
            text.push(format_args!(
                "  would report {}: {} {}",
                report["entity"].as_str().unwrap_or_default(),
                said("HealthState"),
                said("Description").lines().next().unwrap_or_default(),
            ));
        }
        if let Some(error) = &provider.error {
            text.push(format_args!("  no answer: {error}"));
        }
    }
    text.0
}
