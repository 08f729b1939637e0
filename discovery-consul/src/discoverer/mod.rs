//! The discoverer.

mod convert;
mod defaults;
mod destination;
mod labels;
#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use discovery_core::labels::LabelRules;
use discovery_core::{DiscoverError, Discoverer, Discovery, KeyValueLabels, Runner, RunnerOptions};
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::task::AbortHandle;
use tokio::time::{Instant, timeout};

use self::defaults::Defaults;
use crate::client::{BuildError, ConsulClient, ConsulErrorKind};
use crate::options::DiscoveryOptions;
use crate::watch::{ConsulWatch, WatchState};

/// The interval at which a result is made without a change. Making one needs no call.
const INTERVAL: Duration = Duration::from_secs(60);

/// The time limit for a first result, after which the failure is reported.
const FIRST_ANSWER: Duration = Duration::from_secs(20);

/// The longest wait after an error. The watch notifies of changes, and making a result needs no call.
const BACKOFF_MAX: Duration = Duration::from_millis(500);

/// Discovers the services of a Consul.
///
/// The services of all [watched](crate::watch) datacenters are combined: instances with the same service
/// name are the destinations of one cluster. The settings of a service are labels in its tags or its
/// metadata, in the dialect of [`KeyValueLabels`] (`proxy.enable`, `proxy.routes.<name>.hosts`, …):
///
/// | where | as |
/// |---|---|
/// | tag | `proxy.routes.web.hosts=a.example`; without `=` it is `true` |
/// | metadata | `proxy_routes_web_hosts` = `a.example` |
/// | [defaults](DiscoveryOptions::defaults_key) | a JSON object: `{"cluster.loadBalancingPolicy": "RoundRobin"}` |
/// | Traefik's [tags](crate::traefik) | for services that have none of our labels |
///
/// Keys of metadata have no dots, and a part of a key that is a number is a position in a list. Defaults
/// apply to labels that no instance has.
///
/// Metadata takes precedence over tags, and the own datacenter over the others; contradicting labels are
/// reported. `proxy.destinations.scheme` (`http` or `https`) applies to each instance alone.
///
/// | of an instance | becomes |
/// |---|---|
/// | address and port | the destination's address |
/// | status | a destination if all checks pass |
/// | weights | the destination's weight |
/// | datacenter | the destination's zone and priority |
///
/// An instance without a port, or without a valid address, is left out and reported. Instances with warnings
/// are destinations if [`include_warning`](crate::options::ServiceOptions::include_warning) is set.
/// [Priorities](crate::options::ServiceOptions::priorities) put the own datacenter first.
///
/// A service without a healthy instance keeps its routes, and has no destinations.
///
/// Clones share everything. The watch begins with the first call of [`discover`](Discoverer::discover), and
/// ends with the last clone.
///
/// ```no_run
/// use discovery_consul::ConsulDiscoverer;
/// use discovery_consul::client::ConsulOptions;
/// use discovery_consul::options::DiscoveryOptions;
///
/// # #[cfg(feature = "reqwest")]
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let options = DiscoveryOptions::default().with_consul(ConsulOptions::from_env()?);
/// let provider = ConsulDiscoverer::new(options)?.runner().start();
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct ConsulDiscoverer {
    options: Arc<DiscoveryOptions>,
    client: ConsulClient,
    shared: Arc<DiscovererState>,
}

#[derive(Default)]
struct DiscovererState {
    started: Mutex<Option<Started>>,
    /// The state that [`Discoverer::changed`] has seen.
    seen: tokio::sync::Mutex<Option<Sources>>,
    answering: Mutex<Answering>,
}

/// The time since which there are results.
#[derive(Default)]
struct Answering {
    since: Option<Instant>,
    /// True if an empty datacenter is trusted.
    is_believed: bool,
}

/// The running parts.
struct Started {
    watch: ConsulWatch,
    defaults: watch::Receiver<Arc<Defaults>>,
    task: Option<AbortHandle>,
}

impl Drop for Started {
    fn drop(&mut self) {
        if let Some(task) = &self.task {
            task.abort();
        }
    }
}

/// The sources of a result.
#[derive(Clone)]
struct Sources {
    states: watch::Receiver<Arc<WatchState>>,
    defaults: watch::Receiver<Arc<Defaults>>,
}

impl ConsulDiscoverer {
    /// Creates a discoverer that queries an agent over HTTP. No call is made yet.
    ///
    /// # Errors
    ///
    /// The errors of [`ClientBuilder::build`](crate::client::ClientBuilder::build).
    pub fn new(options: DiscoveryOptions) -> Result<Self, BuildError> {
        let client = ConsulClient::new(options.consul.clone())?;
        Ok(Self::with_client(client, options))
    }

    /// Creates a discoverer with a client, in place of the connection options.
    pub fn with_client(client: ConsulClient, options: DiscoveryOptions) -> Self {
        Self {
            options: Arc::new(options),
            client,
            shared: Arc::default(),
        }
    }

    /// Creates a runner for the discoverer, with options and labels derived from its own. Filters and
    /// validators may still be added.
    pub fn runner(&self) -> Runner {
        let services = &self.options.services;
        let labels = KeyValueLabels::with_rules(LabelRules::new(services.label_prefix.clone()))
            .with_enabled_by_default(services.enabled_by_default);
        Runner::new(self.clone())
            .labels(labels)
            .options(self.runner_options())
            .required(!self.options.allow_start_before_discovery)
    }

    /// The options of [`runner`](Self::runner), to change some of them.
    pub fn runner_options(&self) -> RunnerOptions {
        let mut runner = RunnerOptions::default()
            .with_interval(INTERVAL)
            .with_debounce(Duration::from_millis(20))
            .with_min_gap(Duration::from_millis(100))
            .with_discover_timeout(FIRST_ANSWER + self.options.patience + Duration::from_secs(30))
            .with_backoff(BACKOFF_MAX)
            .with_backoff_max(BACKOFF_MAX);
        runner.persist.clone_from(&self.options.persist);
        runner
    }

    /// The client, for other calls.
    pub fn client(&self) -> &ConsulClient {
        &self.client
    }

    /// The known state of the datacenters. `None` if the watch has not started.
    pub fn state(&self) -> Option<Arc<WatchState>> {
        let started = self.shared.started.lock();
        let started = started;
        started.as_ref().map(|started| started.watch.state())
    }

    /// Returns the running parts, after starting them if necessary.
    fn sources(&self) -> Sources {
        let mut started = self.shared.started.lock();
        let started = started.get_or_insert_with(|| self.start());
        Sources {
            states: started.watch.states(),
            defaults: started.defaults.clone(),
        }
    }

    fn start(&self) -> Started {
        let options = &*self.options;
        let watch = ConsulWatch::start(self.client.clone(), options.watch.clone());
        let known = Defaults {
            is_known: options.defaults_key.is_none(),
            ..Defaults::default()
        };
        let (sender, defaults) = watch::channel(Arc::new(known));
        let task = options.defaults_key.clone().map(|key| {
            let follow = options.watch.follow.clone();
            let prefix = options.services.label_prefix.clone();
            let following = defaults::follow(self.client.clone(), follow, key, prefix, sender);
            tokio::spawn(following).abort_handle()
        });
        Started {
            watch,
            defaults,
            task,
        }
    }

    /// Waits for the first results: long for the own datacenter, briefly for the others.
    async fn first_answers(&self, sources: &mut Sources) -> Result<(), DiscoverError> {
        let states = &mut sources.states;
        let own = states.wait_for(|state| own_is_complete(state) || failure_of(state).is_some());
        let _ = timeout(FIRST_ANSWER, own).await;
        let state = Arc::clone(&states.borrow());
        if !own_is_complete(&state) {
            let failure = failure_of(&state).unwrap_or("it is still being read");
            let message = format!(
                "Consul at {} has not been read yet: {failure}",
                self.client.address()
            );
            return Err(failed(&state, message));
        }
        if let Some(reason) = self.is_not_believed(&state) {
            return Err(DiscoverError::transient(reason));
        }
        let patience = self.options.patience;
        // One that has failed just now may respond to a retry.
        let all = states.wait_for(|state| convert::unread_part(state).is_none());
        // Those that are still silent then are reported.
        let _ = timeout(patience, all).await;
        let defaults = sources.defaults.wait_for(|defaults| defaults.is_known);
        let _ = timeout(patience, defaults).await;
        Ok(())
    }
}

impl ConsulDiscoverer {
    /// Returns the reason why the first state of the own datacenter is not trusted. A configuration
    /// restored from disk may be serving, and an empty state may be wrong.
    fn is_not_believed(&self, state: &WatchState) -> Option<String> {
        let own = state.datacenters.first()?;
        if own.is_blank && own.services.is_empty() {
            return Some(format!(
                "Consul at {} shows no service, not even itself: {}",
                self.client.address(),
                ConsulErrorKind::Denied.advice()
            ));
        }
        let answering = self.shared.answering.lock();
        let mut answering = answering;
        let serves = own.services.keys().any(|name| **name != *convert::CONSUL);
        let settle = self.options.watch.shrink.settle;
        let since = *answering.since.get_or_insert_with(Instant::now);
        answering.is_believed |=
            serves || self.options.persist.is_none() || since.elapsed() >= settle;
        (!answering.is_believed).then(|| {
            format!(
                "Consul at {} lists no service yet; that counts {settle:?} after its first response",
                self.client.address()
            )
        })
    }
}

/// Returns true if the own datacenter was read.
fn own_is_complete(state: &WatchState) -> bool {
    let own = state.datacenters.first();
    own.is_some_and(|own| own.is_complete)
}

/// Returns the reason why the own datacenter cannot be read.
fn failure_of(state: &WatchState) -> Option<&str> {
    let of_own = state
        .datacenters
        .first()
        .and_then(|own| own.failure.as_deref());
    of_own.or(state.failure.as_deref())
}

/// The error of a source whose own datacenter cannot be read.
fn failed(state: &WatchState, message: String) -> DiscoverError {
    let own = state.datacenters.first();
    let of_own = own.filter(|own| own.failure.is_some());
    match of_own.map_or(state.is_rejected, |own| own.is_rejected) {
        true => DiscoverError::rejected(message),
        false => DiscoverError::transient(message),
    }
}

/// Returns the reason why no datacenter can be read at present: it cannot be reached, or hides services
/// that it has shown before. While one datacenter responds, the failures of others are warnings.
fn no_answer(state: &WatchState) -> Option<String> {
    let mut datacenters = state.datacenters.iter();
    let none_answers = datacenters.all(|dc| dc.failure.is_some() || dc.is_hidden);
    if !none_answers {
        return None;
    }
    let hidden = state.datacenters.iter().find(|dc| dc.is_hidden);
    let failure = failure_of(state).map(str::to_owned);
    failure.or_else(|| hidden.map(|dc| convert::hides(&dc.datacenter)))
}

#[async_trait]
impl Discoverer for ConsulDiscoverer {
    fn name(&self) -> &str {
        &self.options.name
    }

    async fn discover(&self) -> Result<Discovery, DiscoverError> {
        let mut sources = self.sources();
        self.first_answers(&mut sources).await?;
        let state = Arc::clone(&sources.states.borrow());
        if let Some(failure) = no_answer(&state) {
            let message = format!("Consul at {}: {failure}", self.client.address());
            let problems = convert::problems_of(&state, &sources.defaults.borrow());
            return Err(failed(&state, message).with_problems(problems));
        }
        let defaults = Arc::clone(&sources.defaults.borrow());
        let options = Arc::clone(&self.options);
        // It takes a while for thousands of services, on a blocking thread.
        let convert = move || convert::discovery_of(&state, &defaults, &options.services);
        match tokio::task::spawn_blocking(convert).await {
            Ok(discovery) => Ok(discovery),
            Err(error) => match error.try_into_panic() {
                Ok(panic) => std::panic::resume_unwind(panic),
                Err(_) => Err(DiscoverError::transient("the runtime is shutting down")),
            },
        }
    }

    // `unreachable` is ignored: blocking queries return when something changes, and another query returns
    // the same.
    async fn changed(&self) {
        let mut seen = self.shared.seen.lock().await;
        let sources = seen.get_or_insert_with(|| self.sources());
        let Sources { states, defaults } = sources;
        tokio::select! {
            Ok(()) = states.changed() => {}
            Ok(()) = defaults.changed() => {}
            // Both end only with the watch, and then nothing changes any longer.
            else => std::future::pending().await,
        }
    }
}

impl fmt::Debug for ConsulDiscoverer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConsulDiscoverer")
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}
