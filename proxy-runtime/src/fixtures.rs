//! Configurations for tests.

use std::sync::Arc;

use proxy_model::config::ProxyConfig;
use proxy_model::{CompileOptions, Snapshot};

/// The configuration that `json` writes: what is in the section `ReverseProxy`.
#[track_caller]
pub(crate) fn config(json: &str) -> ProxyConfig {
    ProxyConfig::from_json(json).unwrap_or_else(|problems| panic!("{problems}"))
}

/// The same, compiled.
#[track_caller]
pub(crate) fn snapshot(json: &str) -> Arc<Snapshot> {
    compiled(config(json))
}

/// `config`, compiled.
#[track_caller]
pub(crate) fn compiled(config: ProxyConfig) -> Arc<Snapshot> {
    match Snapshot::compile(config, &CompileOptions::default()) {
        Ok((snapshot, _)) => Arc::new(snapshot),
        Err(problems) => panic!("{problems}"),
    }
}
