//! `discover`: what the configured providers say, once.

use discovery_core::providers::file::FileOptions;
use discovery_core::{ConfigProvider, ProviderState};
use proxy_model::Problems;
use proxy_model::config::ProxyConfig;
use serde::Serialize;

use super::{Failure, print, print_json};
use crate::check::{compile_options, examine};
use crate::cli::{Discover, Format};
use crate::document;
use crate::gateway::with_causes;

/// What the providers say.
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
    /// Reports that the provider would send back to its source. A file takes none.
    health_reports: Vec<serde_json::Value>,
}

pub(crate) async fn discover(options: &Discover) -> Result<(), Failure> {
    let examined = examine(&document::load(&options.files.config)?);
    if examined.problems.has_errors() {
        return Err(examined.problems.into());
    }
    let file = FileOptions::default()
        .with_watch(false)
        .with_section_required(false)
        .with_compile_options(compile_options())
        .open(&options.files.config)
        .await
        .map_err(|error| Failure::new(with_causes(&error)))?;
    let found = Found {
        providers: vec![of_provider(file.name(), &file.state())],
    };
    match options.format {
        Format::Json => print_json(&found),
        Format::Text => print(readable(&found).trim_end()),
    }
}

fn of_provider(name: &str, state: &ProviderState) -> ProviderFound {
    ProviderFound {
        name: name.to_owned(),
        config: state.config.as_deref().cloned(),
        diagnostics: state.problems.clone(),
        health_reports: Vec::new(),
    }
}

fn readable(found: &Found) -> String {
    let mut text = String::new();
    for provider in &found.providers {
        let (routes, clusters) = provider.config.as_ref().map_or((0, 0), |config| {
            (config.routes.len(), config.clusters.len())
        });
        text.push_str(&format!(
            "{}: {routes} routes, {clusters} clusters\n",
            provider.name
        ));
        for (id, route) in provider.config.iter().flat_map(|config| &config.routes) {
            let path = route.r#match.path.as_deref().unwrap_or("every path");
            let cluster = route
                .cluster_id
                .as_ref()
                .map_or("nowhere", |id| id.as_str());
            text.push_str(&format!("  route {id}: {path} → {cluster}\n"));
        }
        for (id, cluster) in provider.config.iter().flat_map(|config| &config.clusters) {
            text.push_str(&format!("  cluster {id}:\n"));
            for (id, destination) in &cluster.destinations {
                text.push_str(&format!("    {id} {}\n", destination.address));
            }
        }
        for problem in &provider.diagnostics {
            text.push_str(&format!("  {problem}\n"));
        }
    }
    text
}
