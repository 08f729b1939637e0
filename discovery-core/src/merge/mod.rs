//! Several providers as one configuration.

mod accepted;
mod combine;
mod draft;
mod driver;
mod options;
mod overrides;
mod prepare;
mod publication;
mod resolutions;
mod state;
#[cfg(test)]
mod tests;

use std::convert::Infallible;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use proxy_model::{ClusterId, CompileOptions, Revision, Snapshot};
use tokio::sync::watch;
use tokio::task::AbortHandle;

use self::driver::MergeWorker;
pub use self::options::{MergeOptions, MergeSource};
use self::prepare::Preparation;
use self::resolutions::Resolutions;
pub use self::state::{MergedState, ProviderReport, SourcedProblem};
use crate::contain::Blocking;
use crate::filter::ConfigFilter;
use crate::provider::{ConfigProvider, ProviderState};
use crate::report::FinishedCycle;
use crate::resolver::DestinationResolver;
use crate::status::SourceState;
use crate::timestamp::Timestamp;
use crate::unreachable::{Unreachable, UnreachableClusters};
use crate::validator::ConfigValidator;

/// Merges the configurations of several providers into one, and keeps it up to date.
///
/// The providers' routes and clusters are combined in the order in which the providers were added. A route
/// may name a cluster of another provider. Of two routes or two clusters with the same id (ignoring case)
/// the first provider's is used, and the other one is left out with a problem that names both: one provider
/// cannot keep another from serving. A route whose own provider's cluster is left out, or is bad, gets 503: it never
/// leads to a cluster of that name which another provider has.
///
/// Before that, each provider's configuration is [prefixed](MergeSource::with_prefix), edited by
/// [filters](Self::filter), checked by the model with the provider's
/// [strictness](ConfigProvider::strictness), [resolved](Self::resolver), and checked by
/// [validators](Self::validator).
///
/// ```
/// use discovery_core::{Merge, StaticProvider};
/// use proxy_model::config::ProxyConfig;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let fixed = ProxyConfig::from_json(
///     r#"{ "Routes": { "all": { "ClusterId": "web", "Match": { "Path": "/{**rest}" } } } }"#,
/// )?;
/// let discovered = ProxyConfig::from_json(
///     r#"{ "Clusters": { "web": { "Destinations": { "1": { "Address": "http://10.0.0.7" } } } } }"#,
/// )?;
/// let merged = Merge::new()
///     .provider(StaticProvider::new("fixed", fixed))
///     .provider(StaticProvider::new("discovered", discovered))
///     .start();
/// let state = merged.ready().await;
/// assert_eq!(state.snapshot.routes().len(), 1);
/// assert_eq!(state.snapshot.clusters().len(), 1);
/// # Ok(())
/// # }
/// ```
#[must_use = "nothing is merged until it is started"]
#[derive(Default)]
pub struct Merge {
    sources: Vec<MergeSource>,
    filters: Vec<Arc<dyn ConfigFilter>>,
    validators: Vec<Arc<dyn ConfigValidator>>,
    resolver: Option<Arc<dyn DestinationResolver>>,
    compile: CompileOptions,
    options: MergeOptions,
}

impl Merge {
    /// Creates a merge without providers.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a provider, after those that were added before.
    pub fn provider(self, provider: impl ConfigProvider + 'static) -> Self {
        self.source(MergeSource::new(provider))
    }

    /// Adds a provider with settings of its own.
    pub fn source(mut self, source: MergeSource) -> Self {
        self.sources.push(source);
        self
    }

    /// Adds a filter that edits the configuration of every provider.
    pub fn filter(mut self, filter: impl ConfigFilter + 'static) -> Self {
        self.filters.push(Arc::new(filter));
        self
    }

    /// Adds a check of the merged configuration.
    pub fn validator(mut self, validator: impl ConfigValidator + 'static) -> Self {
        self.validators.push(Arc::new(validator));
        self
    }

    /// Sets who resolves destinations.
    pub fn resolver(mut self, resolver: impl DestinationResolver + 'static) -> Self {
        self.resolver = Some(Arc::new(resolver));
        self
    }

    /// Sets how the configuration is compiled: the names of policies that the program registered.
    pub fn compile_options(mut self, options: CompileOptions) -> Self {
        self.compile = options;
        self
    }

    /// Sets how the merge behaves.
    pub fn options(mut self, options: MergeOptions) -> Self {
        self.options = options;
        self
    }

    /// Starts the merge as a task of the current tokio runtime. The task ends, and the providers are dropped, when the
    /// returned value is dropped.
    ///
    /// # Panics
    ///
    /// Panics when called outside of a tokio runtime.
    #[track_caller]
    pub fn start(self) -> Merged {
        let (mut merged, driver) = self.into_parts();
        merged.task = Some(tokio::spawn(driver).abort_handle());
        merged
    }

    /// Returns the result and the future that does the work, for programs that own the task. The future
    /// ends only at the shutdown of its runtime; while it is not polled nothing is merged.
    pub fn into_parts(self) -> (Merged, MergeDriver) {
        let filters: Arc<[_]> = self.filters.into();
        let options = self.options.bounded();
        let empty = Arc::new(Snapshot::empty());
        let state = watch::Sender::new(Arc::new(MergedState {
            snapshot: Arc::clone(&empty),
            since: Timestamp::now(),
            publications: 0,
            rejections: 0,
            problems: Vec::new(),
            ready: false,
            waiting_for: Vec::new(),
            contributions: Vec::new(),
            origins: Arc::default(),
        }));
        let snapshots = watch::Sender::new(empty);
        let sources = self.sources.iter().map(|source| driver::Source {
            preparation: Preparation {
                provider: source.provider.name().into(),
                prefix: source.prefix.as_deref().map(Into::into),
                strictness: source.strictness(),
                filters: Arc::clone(&filters),
                compile: source
                    .compile
                    .clone()
                    .unwrap_or_else(|| self.compile.clone()),
            },
            required: source.is_required(),
            states: source.provider.subscribe(),
            open: true,
            newest: None,
            serving: None,
            rejected_since: None,
            unusable: None,
            accepted: None,
            unnamed: None,
            retry: None,
            preparing: Blocking::default(),
        });
        let sources = sources.collect();
        let merged = Merged {
            state: state.subscribe(),
            snapshots: snapshots.subscribe(),
            task: None,
            sources: self.sources,
        };
        let worker = MergeWorker {
            sources,
            validators: self.validators,
            resolutions: self.resolver.map(|resolver| {
                Resolutions::new(
                    resolver,
                    options.resolve_timeout,
                    options.resolve_concurrency,
                )
            }),
            compile: self.compile,
            options,
            state,
            snapshots,
            judged: None,
        };
        (merged, MergeDriver(Box::pin(worker.run())))
    }
}

impl fmt::Debug for Merge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Merge")
            .field("sources", &self.sources)
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}

/// The work of a [`Merge`].
///
/// # Cancel safety
///
/// May be dropped at any time. Calls to resolvers and validators in progress are dropped too. The last
/// snapshot stays, and receivers see their channel closed.
#[must_use = "nothing is merged unless the driver is polled"]
pub struct MergeDriver(Pin<Box<dyn Future<Output = ()> + Send>>);

impl Future for MergeDriver {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        self.0.as_mut().poll(context)
    }
}

impl fmt::Debug for MergeDriver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MergeDriver").finish_non_exhaustive()
    }
}

/// The configuration of several providers. Owns the providers, and the task if it was [started](Merge::start) with
/// one; both end when it is dropped.
#[derive(Debug)]
pub struct Merged {
    state: watch::Receiver<Arc<MergedState>>,
    snapshots: watch::Receiver<Arc<Snapshot>>,
    task: Option<AbortHandle>,
    sources: Vec<MergeSource>,
}

impl Merged {
    /// The snapshot that serves, and a signal when there is another one. It is empty until the first provider has a
    /// configuration.
    pub fn snapshots(&self) -> watch::Receiver<Arc<Snapshot>> {
        self.snapshots.clone()
    }

    /// The current state, and a signal when the snapshot, the problems or the readiness change.
    pub fn subscribe(&self) -> watch::Receiver<Arc<MergedState>> {
        self.state.clone()
    }

    /// The current state.
    pub fn state(&self) -> Arc<MergedState> {
        Arc::clone(&self.state.borrow())
    }

    /// Waits until a configuration of every required provider was accepted. There is no time limit; the caller sets
    /// one if it needs it.
    ///
    /// # Cancel safety
    ///
    /// May be dropped at any time.
    pub async fn ready(&self) -> Arc<MergedState> {
        let mut states = self.state.clone();
        if let Ok(state) = states.wait_for(|state| state.ready).await {
            return Arc::clone(&state);
        }
        // The merge has ended before it was ready, so it will never be.
        std::future::pending().await
    }

    /// Waits until every required provider has serving configuration from a successful poll of its source,
    /// not only from disk. A configuration that the merge rejects counts too, while the one accepted before
    /// serves. Never returns if that never happens.
    ///
    /// # Cancel safety
    ///
    /// May be dropped at any time.
    pub async fn confirmed(&self) -> Arc<MergedState> {
        for (position, source) in self.sources.iter().enumerate() {
            if !source.is_required() {
                continue;
            }
            let mut states = source.provider.subscribe();
            let is_live = |state: &ProviderState| {
                matches!(state.status.state, SourceState::Live | SourceState::Partial)
            };
            if states.wait_for(|state| is_live(state)).await.is_err() {
                std::future::pending::<()>().await;
            }
            let mut merged = self.state.clone();
            let has_it = |merged: &Arc<MergedState>| {
                let state = states.borrow();
                let revision =
                    (state.revision).or_else(|| state.config.as_deref().map(Revision::of));
                let contribution = merged.contributions.get(position);
                contribution.is_some_and(|contribution| {
                    contribution.revision == revision || contribution.rejected_since.is_some()
                })
            };
            if merged.wait_for(has_it).await.is_err() {
                std::future::pending::<()>().await;
            }
        }
        self.ready().await
    }

    /// Reports a cluster that requests cannot reach to its provider. Never waits.
    pub fn unreachable(&self, cluster: &ClusterId, seen: Unreachable) {
        let state = Arc::clone(&self.state.borrow());
        let origin = state.origins.clusters.get(cluster);
        let Some(source) = origin.and_then(|position| self.sources.get(*position)) else {
            return;
        };
        match &source.prefix {
            None => source.provider.unreachable(cluster, seen),
            Some(prefix) => {
                // Ids are the same in any case, and the prefix is as it was written.
                if let Some(own) = cluster.as_str().get(prefix.len()..) {
                    source.provider.unreachable(&ClusterId::from(own), seen);
                }
            }
        }
    }

    /// Passes reports of unreachable clusters to the provider of each cluster. Never ends.
    ///
    /// # Cancel safety
    ///
    /// May be dropped at any time.
    pub async fn follow_unreachable(&self, reported: &UnreachableClusters) -> Infallible {
        loop {
            for (cluster, seen) in reported.next().await {
                self.unreachable(&cluster, seen);
            }
        }
    }

    /// The providers that poll a source, by name, each with its last poll and a signal at the end of each.
    pub fn cycles(&self) -> Vec<(Arc<str>, watch::Receiver<Option<FinishedCycle>>)> {
        let polled = |source: &MergeSource| {
            let cycles = source.provider.cycles()?;
            Some((source.provider.name().into(), cycles))
        };
        self.sources.iter().filter_map(polled).collect()
    }

    /// The current state of each provider, in their order.
    pub fn providers(&self) -> Vec<ProviderReport> {
        let merged = self.state();
        let report = |(position, source): (usize, &MergeSource)| {
            let contribution = merged
                .contributions
                .get(position)
                .cloned()
                .unwrap_or_default();
            let state = Arc::clone(&source.provider.subscribe().borrow());
            ProviderReport {
                name: source.provider.name().into(),
                required: source.is_required(),
                strictness: source.strictness(),
                prefix: source.prefix.clone(),
                revision: state
                    .revision
                    .or_else(|| state.config.as_deref().map(Revision::of)),
                serving_revision: contribution.revision,
                rejected_since: contribution.rejected_since,
                routes: contribution.routes,
                clusters: contribution.clusters,
                status: state.status.clone(),
                problems: state.problems.clone(),
            }
        };
        self.sources.iter().enumerate().map(report).collect()
    }
}

impl Drop for Merged {
    fn drop(&mut self) {
        if let Some(task) = &self.task {
            task.abort();
        }
    }
}
