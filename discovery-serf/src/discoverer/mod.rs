//! The discoverer.

mod conversion;
mod cycle;
mod dial;
mod failure;
mod hold;
mod key;
mod session;
mod signal;
#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use discovery_core::{DiscoverError, Discoverer, Discovery, LabelsParser, Runner, RunnerOptions};
use parking_lot::Mutex;

use self::cycle::Cycles;
pub use self::dial::{Dial, Transport};
use self::signal::Signal;
use crate::catalog::LeftOut;
use crate::generate::{CatalogService, ServiceTags, TagsParser};
use crate::options::SerfOptions;

/// The longest wait after a first error. An agent that restarts is back in no time.
const BACKOFF: Duration = Duration::from_millis(100);

/// The longest wait after a temporary error: a recovered agent is noticed within moments.
const BACKOFF_MAX: Duration = Duration::from_secs(2);

/// The wait after a rejection, which lasts until an operator changes something. Earlier retries would only
/// fill the agent's log.
const REJECTED: Duration = Duration::from_secs(10);

/// Discovers the services of a Serf cluster by polling one of its agents.
///
/// Agents list all members; members and their tags become services ([`crate::catalog`]), and these become
/// configuration ([`crate::generate`]). Events of the agent only trigger a poll; their content is not used,
/// since agents drop and repeat events.
///
/// Clones share everything: one can be given to a runner, and another used to read the members that were
/// [left out](Self::left_out). When the last clone is dropped the connection is closed.
///
/// ```no_run
/// use discovery_serf::{SerfDiscoverer, SerfOptions};
///
/// # async fn example() {
/// let options = SerfOptions::of(["127.0.0.1:7373", "10.0.0.2:7373"]).with_auth_key("sekrit");
/// let provider = SerfDiscoverer::new(options).runner().start();
/// # }
/// ```
#[derive(Clone)]
pub struct SerfDiscoverer {
    options: Arc<SerfOptions>,
    dialer: Option<Arc<dyn Dial>>,
    parser: Arc<TagsParser>,
    shared: Arc<DiscovererState>,
}

struct DiscovererState {
    signal: Arc<Signal>,
    /// Locked for the length of a cycle.
    cycles: tokio::sync::Mutex<Cycles>,
    view: Mutex<View>,
}

/// The result of the last cycle, for accessors.
#[derive(Clone, Debug, Default)]
struct View {
    agent: Option<Arc<str>>,
    left_out: Arc<[LeftOut]>,
}

impl SerfDiscoverer {
    /// Creates a discoverer that reaches agents over TCP. The first poll opens a connection.
    pub fn new(options: SerfOptions) -> Self {
        let options = options.bounded();
        Self {
            shared: Arc::new(DiscovererState {
                signal: Arc::new(Signal::new()),
                cycles: tokio::sync::Mutex::new(Cycles::new(&options)),
                view: Mutex::default(),
            }),
            parser: Arc::new(ServiceTags::new(options.generate.clone())),
            options: Arc::new(options),
            dialer: None,
        }
    }

    /// Sets another way to reach agents. Must be called before the discoverer is cloned or used.
    #[must_use]
    pub fn with_dialer(mut self, dialer: impl Dial + 'static) -> Self {
        self.dialer = Some(Arc::new(dialer));
        self
    }

    /// Sets the parser that turns services into configuration. Default: [`ServiceTags`] with
    /// [`SerfOptions::generate`]. Must be called before the discoverer is cloned or used.
    ///
    /// ```
    /// use discovery_core::{LabelsParser, Parsed};
    /// use discovery_serf::generate::{CatalogService, ServiceTags};
    /// use discovery_serf::{SerfDiscoverer, SerfOptions};
    ///
    /// /// Services with a host alone.
    /// struct WithHost(ServiceTags);
    ///
    /// impl LabelsParser<CatalogService<'_>> for WithHost {
    ///     fn parse(&self, name: &str, described: &CatalogService<'_>) -> Parsed {
    ///         match described.service.hint {
    ///             discovery_serf::catalog::RouteHint::Host(_) => self.0.parse(name, described),
    ///             _ => Parsed::not_enabled(),
    ///         }
    ///     }
    /// }
    ///
    /// let parser = WithHost(ServiceTags::default());
    /// let discoverer = SerfDiscoverer::new(SerfOptions::of(["127.0.0.1:7373"])).with_parser(parser);
    /// ```
    #[must_use]
    pub fn with_parser(
        mut self,
        parser: impl for<'c> LabelsParser<CatalogService<'c>> + 'static,
    ) -> Self {
        self.parser = Arc::new(parser);
        self
    }

    /// A runner for it, with options that are derived from its own: one may still add filters and validators.
    pub fn runner(&self) -> Runner {
        Runner::new(self.clone())
            .options(self.runner_options())
            .required(!self.options.allow_start_before_discovery)
    }

    /// The options of [`runner`](Self::runner), to change some of them.
    pub fn runner_options(&self) -> RunnerOptions {
        let options = &*self.options;
        let mut runner = RunnerOptions::default()
            .with_interval(options.reconcile_interval)
            .with_discover_timeout(cycle::longest(options))
            .with_debounce(options.debounce)
            .with_debounce_max(options.debounce_max)
            .with_backoff(BACKOFF)
            .with_backoff_max(BACKOFF_MAX);
        runner.persist.clone_from(&options.persist);
        runner
    }

    /// Returns the members that are not destinations as of the last result, with the reasons, by name.
    pub fn left_out(&self) -> Vec<LeftOut> {
        self.view(|view| view.left_out.to_vec())
    }

    /// Returns the agent of the last result. `None` if there was none, or if the poll after it failed.
    pub fn agent(&self) -> Option<Arc<str>> {
        self.view(|view| view.agent.clone())
    }

    fn view<T>(&self, see: impl FnOnce(&mut View) -> T) -> T {
        // It is valid between any two changes.
        let mut view = self.shared.view.lock();
        see(&mut view)
    }
}

#[async_trait]
impl Discoverer for SerfDiscoverer {
    fn name(&self) -> &str {
        &self.options.name
    }

    async fn discover(&self) -> Result<Discovery, DiscoverError> {
        let signal = &self.shared.signal;
        signal.wake_at(None);
        let mut cycles = self.shared.cycles.lock().await;
        let asking = cycle::Asking {
            options: &self.options,
            parser: &self.parser,
            dialer: self.dialer.as_deref(),
            signal,
        };
        match cycles.cycle(&asking).await {
            Ok(answer) => {
                self.view(|view| {
                    view.agent = Some(answer.agent);
                    view.left_out = answer.left_out.into();
                });
                signal.wake_at(answer.wake);
                Ok(answer.discovery)
            }
            Err(error) => {
                self.view(|view| view.agent = None);
                Err(error)
            }
        }
    }

    // `unreachable` is ignored: events come as soon as the agent knows of a change, and a poll reveals no
    // more.
    async fn changed(&self) {
        self.shared.signal.wait().await;
    }
}

impl fmt::Debug for SerfDiscoverer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SerfDiscoverer")
            .field("options", &self.options)
            .field("agent", &self.agent())
            .finish_non_exhaustive()
    }
}
