//! The trait between a source of configuration and what uses it.

use std::sync::Arc;

use proxy_model::config::ProxyConfig;
use proxy_model::json::Origins;
use proxy_model::{ClusterId, Problems, Revision};
use serde::Serialize;
use tokio::sync::watch;

use crate::discovery::Outdated;
use crate::report::FinishedCycle;
use crate::status::{Failure, ProviderStatus, SourceState};
use crate::timestamp::Timestamp;
use crate::unreachable::Unreachable;

/// Provides configuration, and notifies of changes.
///
/// The [`Runner`](crate::Runner) makes one of a [`Discoverer`](crate::Discoverer), which is the easier trait to
/// implement. Implement this one for a source that pushes configuration by itself. Several providers become one
/// configuration with [`Merge`](crate::Merge).
///
/// # Example
///
/// ```
/// use std::sync::Arc;
///
/// use discovery_core::{ConfigProvider, ProviderState};
/// use proxy_model::config::ProxyConfig;
/// use tokio::sync::watch;
///
/// /// Configuration that arrives over some channel of the program's own.
/// struct Pushed(watch::Sender<Arc<ProviderState>>);
///
/// impl Pushed {
///     fn new() -> Self {
///         Self(watch::Sender::new(Arc::new(ProviderState::waiting())))
///     }
///
///     fn receive(&self, config: ProxyConfig) {
///         self.0.send_replace(Arc::new(ProviderState::serving(config)));
///     }
/// }
///
/// impl ConfigProvider for Pushed {
///     fn name(&self) -> &str {
///         "pushed"
///     }
///
///     fn subscribe(&self) -> watch::Receiver<Arc<ProviderState>> {
///         self.0.subscribe()
///     }
/// }
///
/// let provider = Pushed::new();
/// let state = provider.subscribe();
/// provider.receive(ProxyConfig::default());
/// assert!(state.borrow().config.is_some());
/// ```
///
/// # Cancel safety
///
/// The methods are synchronous. Receivers only read the latest state, so a provider never waits for them,
/// and dropping a receiver has no effect on others. When the sender is dropped the last state continues to
/// serve.
pub trait ConfigProvider: Send + Sync {
    /// Names the provider in logs, metrics and problems.
    fn name(&self) -> &str;

    /// The current state, and a signal when it changes.
    ///
    /// Receivers must be notified when the configuration, the problems or the kind of state changes. Other
    /// parts of the status may change without a notification.
    fn subscribe(&self) -> watch::Receiver<Arc<ProviderState>>;

    /// The last poll of the source that has ended, and a signal at the end of each. `None` for providers that do not
    /// poll. A receiver that is slower than the polls misses some.
    fn cycles(&self) -> Option<watch::Receiver<Option<FinishedCycle>>> {
        None
    }

    /// Receives the report that requests cannot reach one of this provider's clusters, so that its
    /// addresses may be refreshed. Called for each failing request; must not block. The default ignores it.
    fn unreachable(&self, cluster: &ClusterId, seen: Unreachable) {
        let _ = (cluster, seen);
    }

    /// Returns true if the proxy is ready only after this provider has delivered a configuration.
    fn is_required(&self) -> bool {
        true
    }

    /// The handling of bad parts of the configuration.
    fn strictness(&self) -> Strictness {
        Strictness::Isolated
    }
}

impl<P: ConfigProvider + ?Sized> ConfigProvider for Arc<P> {
    fn name(&self) -> &str {
        (**self).name()
    }

    fn subscribe(&self) -> watch::Receiver<Arc<ProviderState>> {
        (**self).subscribe()
    }

    fn cycles(&self) -> Option<watch::Receiver<Option<FinishedCycle>>> {
        (**self).cycles()
    }

    fn unreachable(&self, cluster: &ClusterId, seen: Unreachable) {
        (**self).unreachable(cluster, seen);
    }

    fn is_required(&self) -> bool {
        (**self).is_required()
    }

    fn strictness(&self) -> Strictness {
        (**self).strictness()
    }
}

/// The handling of bad parts of a provider's configuration.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Strictness {
    /// Accepts the good routes and clusters. Bad ones serve in the last accepted form, or not at all if
    /// there is none. For input from many owners.
    #[default]
    Isolated,
    /// Rejects the configuration as a whole: the last one without an error continues to serve. For a file
    /// that a person wrote, who should see the typo.
    AllOrNothing,
}

/// The published state of a [`ConfigProvider`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ProviderState {
    /// The configuration. `None` if there has not been one yet, which is not the same as an empty one.
    pub config: Option<Arc<ProxyConfig>>,
    /// Identifies the configuration by its content.
    pub revision: Option<Revision>,
    /// Problems that the provider reports.
    pub problems: Problems,
    /// The JSON pointer to the section that holds `Routes` and `Clusters` where a person wrote them:
    /// `/ReverseProxy`. Problems that are found elsewhere in the configuration are placed below it.
    /// Default: empty.
    pub section: Arc<str>,
    /// The origins of the configuration's values, for problems that are found elsewhere. Default: none.
    pub origins: Option<Arc<Origins>>,
    /// The status of the provider.
    pub status: ProviderStatus,
}

impl ProviderState {
    /// Creates a state without a configuration.
    pub fn waiting() -> Self {
        Self {
            config: None,
            revision: None,
            problems: Problems::new(),
            section: Arc::from(""),
            origins: None,
            status: ProviderStatus::new(SourceState::Starting),
        }
    }

    /// Creates a state with this configuration, as of now.
    pub fn serving(config: impl Into<Arc<ProxyConfig>>) -> Self {
        let mut state = Self::waiting();
        state.serve(config.into());
        state
    }

    /// Replaces the problems.
    #[must_use]
    pub fn with_problems(mut self, problems: Problems) -> Self {
        self.problems = problems;
        self
    }

    /// Sets the configuration, as of now. Returns true if it differs from the previous one.
    pub fn serve(&mut self, config: Arc<ProxyConfig>) -> bool {
        let revision = Revision::of(&config);
        self.serve_revision(config, revision)
    }

    pub(crate) fn serve_revision(&mut self, config: Arc<ProxyConfig>, revision: Revision) -> bool {
        self.status.last_ok = Some(Timestamp::now());
        self.status.consecutive_failures = 0;
        self.status.enter(SourceState::Live);
        self.replace(config, revision)
    }

    /// Publishes a configuration, a part of which is outdated.
    pub(crate) fn serve_in_part(
        &mut self,
        config: Arc<ProxyConfig>,
        revision: Revision,
        outdated: &Outdated,
    ) -> bool {
        let status = &mut self.status;
        status.last_ok = Some(outdated.since);
        status.consecutive_failures = status.consecutive_failures.saturating_add(1);
        status.last_error = Some(Failure {
            at: Timestamp::now(),
            kind: outdated.kind,
            message: outdated.error.clone(),
        });
        status.enter(SourceState::Partial);
        self.replace(config, revision)
    }

    /// Returns true if the configuration differs from the one before.
    fn replace(&mut self, config: Arc<ProxyConfig>, revision: Revision) -> bool {
        if self.revision.as_ref() == Some(&revision) {
            return false;
        }
        self.config = Some(config);
        self.revision = Some(revision);
        self.status.changes += 1;
        true
    }
}
