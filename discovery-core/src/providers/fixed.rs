//! Configuration from code.

use std::sync::Arc;

use proxy_model::Problems;
use proxy_model::config::ProxyConfig;
use tokio::sync::watch;

use crate::provider::{ConfigProvider, ProviderState, Strictness};

/// Provides configuration that the program makes itself, and may replace at any time.
///
/// Clones share the configuration, so keep one to [`update`](Self::update) when another one goes into a
/// [`Merge`](crate::Merge).
///
/// ```
/// use discovery_core::{ConfigProvider, StaticProvider};
/// use proxy_model::config::{ClusterConfig, ProxyConfig};
///
/// let provider = StaticProvider::new("code", ProxyConfig::default());
/// let handle = provider.clone();
///
/// let mut config = ProxyConfig::default();
/// config.clusters.insert("web".into(), ClusterConfig::default());
/// assert!(handle.update(config));
/// assert_eq!(provider.subscribe().borrow().config.as_ref().unwrap().clusters.len(), 1);
/// ```
#[derive(Clone, Debug)]
pub struct StaticProvider {
    name: Arc<str>,
    required: bool,
    strictness: Strictness,
    state: Arc<watch::Sender<Arc<ProviderState>>>,
}

impl StaticProvider {
    /// Creates a provider with this configuration. A bad part of it rejects the whole, as for a
    /// [file](Strictness::AllOrNothing).
    pub fn new(name: impl Into<Arc<str>>, config: impl Into<Arc<ProxyConfig>>) -> Self {
        Self::with_state(name.into(), ProviderState::serving(config))
    }

    /// Creates a provider that has no configuration before the first [`update`](Self::update).
    pub fn waiting(name: impl Into<Arc<str>>) -> Self {
        Self::with_state(name.into(), ProviderState::waiting())
    }

    fn with_state(name: Arc<str>, state: ProviderState) -> Self {
        Self {
            name,
            required: true,
            strictness: Strictness::AllOrNothing,
            state: Arc::new(watch::Sender::new(Arc::new(state))),
        }
    }

    /// Sets whether the proxy is ready only after this provider has delivered a configuration. Default: true.
    #[must_use]
    pub fn required(mut self, required: bool) -> Self {
        self.required = required;
        self
    }

    /// Sets the handling of bad parts of the configuration. Default: all or nothing.
    #[must_use]
    pub fn strictness(mut self, strictness: Strictness) -> Self {
        self.strictness = strictness;
        self
    }

    /// Replaces the whole configuration at once. Returns true if it differs from the previous one;
    /// otherwise no subscriber is notified.
    pub fn update(&self, config: impl Into<Arc<ProxyConfig>>) -> bool {
        self.update_with(config.into(), Problems::new())
    }

    /// Replaces the configuration and its problems.
    pub fn update_with(&self, config: impl Into<Arc<ProxyConfig>>, problems: Problems) -> bool {
        let config = config.into();
        let mut changed = false;
        self.state.send_if_modified(|shared| {
            let mut state = (**shared).clone();
            changed = state.serve(config);
            let notify = changed || state.problems != problems;
            state.problems = problems;
            *shared = Arc::new(state);
            notify
        });
        changed
    }
}

impl ConfigProvider for StaticProvider {
    fn name(&self) -> &str {
        &self.name
    }

    fn subscribe(&self) -> watch::Receiver<Arc<ProviderState>> {
        self.state.subscribe()
    }

    fn is_required(&self) -> bool {
        self.required
    }

    fn strictness(&self) -> Strictness {
        self.strictness
    }
}
