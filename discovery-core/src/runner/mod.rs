//! The engine that drives a [`Discoverer`]: it polls repeatedly, evaluates the services one by one, keeps
//! the last known good forms and publishes changes.

mod evaluate;
mod fallback;
mod good;
mod hints;
mod options;
mod publish;
mod registry;
mod schedule;
mod seniority;
mod settling;
#[cfg(test)]
mod tests;
mod triggers;
mod validation;
mod worker;

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use proxy_model::{ClusterId, CompileOptions};
use tokio::sync::watch;
use tokio::task::AbortHandle;
use tokio::time::Instant;

use self::evaluate::Evaluator;
pub(crate) use self::good::Good;
use self::hints::Hints;
pub use self::options::{ConfirmRemoval, RunnerOptions};
use self::publish::Publisher;
use self::registry::Registry;
pub(crate) use self::registry::{KeptQuarantine, KeptService, KeptState};
use self::schedule::Schedule;
use self::triggers::{Pause, Triggers};
use self::validation::Validation;
use self::worker::{CycleEnd, Worker};
use crate::contain::Blocking;
use crate::discoverer::Discoverer;
use crate::filter::ConfigFilter;
use crate::labels::{KeyValueLabels, LabelsParser};
use crate::persist::Store;
use crate::provider::{ConfigProvider, ProviderState, Strictness};
use crate::report::{CycleReport, FinishedCycle};
use crate::unreachable::{Unreachable, UnreachableClusters};
use crate::validator::ConfigValidator;

/// Makes a [`ConfigProvider`] of a [`Discoverer`].
///
/// ```
/// use std::time::Duration;
///
/// use discovery_core::{ConfigProvider, Discoverer, KeyValueLabels, Runner, RunnerOptions};
///
/// # async fn example(registry: impl Discoverer + 'static) {
/// let provider = Runner::new(registry)
///     .labels(KeyValueLabels::new().with_prefix("acme."))
///     .options(RunnerOptions::default().with_interval(Duration::from_secs(10)))
///     .start();
/// let mut state = provider.subscribe();
/// while state.changed().await.is_ok() {
///     println!("{:?}", state.borrow_and_update().status.state);
/// }
/// # }
/// ```
#[must_use = "a runner does nothing until it is started"]
pub struct Runner {
    discoverer: Arc<dyn Discoverer>,
    parser: Arc<dyn LabelsParser>,
    filters: Vec<Arc<dyn ConfigFilter>>,
    validators: Vec<Arc<dyn ConfigValidator>>,
    compile: CompileOptions,
    options: RunnerOptions,
    required: bool,
    strictness: Strictness,
}

impl Runner {
    /// Creates a runner with default options that reads [`KeyValueLabels`].
    pub fn new(discoverer: impl Discoverer + 'static) -> Self {
        Self {
            discoverer: Arc::new(discoverer),
            parser: Arc::new(KeyValueLabels::new()),
            filters: Vec::new(),
            validators: Vec::new(),
            compile: CompileOptions::default(),
            options: RunnerOptions::default(),
            required: true,
            strictness: Strictness::Isolated,
        }
    }

    /// Sets who turns labels into configuration.
    pub fn labels(mut self, parser: impl LabelsParser + 'static) -> Self {
        self.parser = Arc::new(parser);
        self
    }

    /// Adds a filter that edits each service's configuration before it is checked.
    pub fn filter(mut self, filter: impl ConfigFilter + 'static) -> Self {
        self.filters.push(Arc::new(filter));
        self
    }

    /// Adds a check of each service's configuration.
    pub fn validator(mut self, validator: impl ConfigValidator + 'static) -> Self {
        self.validators.push(Arc::new(validator));
        self
    }

    /// Sets how configuration is compiled when it is checked: the names of policies that the program registered.
    pub fn compile_options(mut self, options: CompileOptions) -> Self {
        self.compile = options;
        self
    }

    /// Sets how the runner behaves.
    pub fn options(mut self, options: RunnerOptions) -> Self {
        self.options = options;
        self
    }

    /// Sets whether the proxy is not ready before this source was polled successfully. Default: true.
    pub fn required(mut self, required: bool) -> Self {
        self.required = required;
        self
    }

    /// Sets what happens in the merged configuration when a part of this source's is bad. Services are isolated from
    /// each other by the runner in any case.
    pub fn strictness(mut self, strictness: Strictness) -> Self {
        self.strictness = strictness;
        self
    }

    /// Starts the runner as a task of the current tokio runtime. The task ends when the provider is dropped.
    ///
    /// # Panics
    ///
    /// Panics when called outside of a tokio runtime.
    #[track_caller]
    pub fn start(self) -> DiscoveryProvider {
        let (mut provider, driver) = self.into_parts();
        provider.task = Some(tokio::spawn(driver).abort_handle());
        provider
    }

    /// Returns the provider and the future that does its work, for programs that own the task. The future
    /// ends only at the shutdown of its runtime; while it is not polled nothing happens.
    pub fn into_parts(self) -> (DiscoveryProvider, Driver) {
        let required = self.required;
        let strictness = self.strictness;
        let triggers = Triggers::new(Arc::clone(&self.discoverer));
        let unreachable = Arc::new(UnreachableClusters::new());
        let worker = self.into_worker();
        let hints = Hints::new(Arc::clone(&unreachable), &worker.options);
        let provider = DiscoveryProvider {
            name: Arc::clone(&worker.publisher.source),
            required,
            strictness,
            state: worker.publisher.state.subscribe(),
            reports: worker.publisher.reports.subscribe(),
            cycles: worker.publisher.cycles.subscribe(),
            unreachable,
            task: None,
        };
        (provider, Driver(Box::pin(drive(worker, triggers, hints))))
    }

    /// Polls the source once, without reporting the results to it and without using the disk, to inspect a
    /// source.
    ///
    /// # Cancel safety
    ///
    /// May be dropped at any time.
    pub async fn run_once(mut self) -> Once {
        self.options.persist = None;
        let mut worker = self.into_worker();
        let report = match worker.cycle().await {
            CycleEnd::Answered { report, .. } => Some(report),
            CycleEnd::Failed(..) | CycleEnd::ShuttingDown => None,
        };
        let state = Arc::clone(&worker.publisher.state.borrow());
        Once { state, report }
    }

    fn into_worker(self) -> Worker {
        let source: Arc<str> = self.discoverer.name().into();
        let options = self.options.bounded();
        Worker {
            evaluator: Arc::new(Evaluator {
                source: Arc::clone(&source),
                parser: self.parser,
                filters: self.filters,
                compile: self.compile,
                unread_grace: options.unread_grace,
            }),
            validation: Validation::new(
                Arc::clone(&source),
                self.validators,
                options.validate_timeout,
            ),
            registry: Some(Registry::new(options.keep_order, options.confirm_removal)),
            publisher: Publisher::new(source),
            store: options
                .persist
                .clone()
                .map(|path| Store::new(path, options.unread_grace)),
            evaluation: Blocking::default(),
            disk: Blocking::default(),
            discoverer: self.discoverer,
            options,
        }
    }
}

impl fmt::Debug for Runner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Runner")
            .field("source", &self.discoverer.name())
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}

/// The result of [`Runner::run_once`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Once {
    /// The configuration, the problems, and the error if there was one.
    pub state: Arc<ProviderState>,
    /// The result of each service. `None` if the source could not be polled.
    pub report: Option<Arc<CycleReport>>,
}

/// The work of a [`Runner`].
///
/// # Cancel safety
///
/// May be dropped at any time. That drops the calls to the source that are in flight, and sets the
/// provider's state to [`Stopped`](crate::SourceState::Stopped): the last configuration continues to serve.
#[must_use = "nothing is discovered unless the driver is polled"]
pub struct Driver(Pin<Box<dyn Future<Output = ()> + Send>>);

impl Future for Driver {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        self.0.as_mut().poll(context)
    }
}

impl fmt::Debug for Driver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Driver").finish_non_exhaustive()
    }
}

/// The [`ConfigProvider`] that a [`Runner`] makes of a discoverer. Dropping it ends the runner that it was
/// [started](Runner::start) with.
#[derive(Debug)]
pub struct DiscoveryProvider {
    name: Arc<str>,
    required: bool,
    strictness: Strictness,
    state: watch::Receiver<Arc<ProviderState>>,
    reports: watch::Receiver<Option<Arc<CycleReport>>>,
    cycles: watch::Receiver<Option<FinishedCycle>>,
    unreachable: Arc<UnreachableClusters>,
    task: Option<AbortHandle>,
}

impl DiscoveryProvider {
    /// The current state.
    pub fn state(&self) -> Arc<ProviderState> {
        Arc::clone(&self.state.borrow())
    }

    /// The result of each service in the last successful cycle.
    pub fn reports(&self) -> watch::Receiver<Option<Arc<CycleReport>>> {
        self.reports.clone()
    }
}

impl ConfigProvider for DiscoveryProvider {
    fn name(&self) -> &str {
        &self.name
    }

    fn subscribe(&self) -> watch::Receiver<Arc<ProviderState>> {
        self.state.clone()
    }

    fn cycles(&self) -> Option<watch::Receiver<Option<FinishedCycle>>> {
        Some(self.cycles.clone())
    }

    fn unreachable(&self, cluster: &ClusterId, seen: Unreachable) {
        self.unreachable.report(cluster, seen);
    }

    fn is_required(&self) -> bool {
        self.required
    }

    fn strictness(&self) -> Strictness {
        self.strictness
    }
}

impl Drop for DiscoveryProvider {
    fn drop(&mut self) {
        if let Some(task) = &self.task {
            task.abort();
        }
    }
}

/// The wait after a cycle in which validators took all the time, so that some services have never been validated.
const CATCH_UP: Duration = Duration::from_secs(1);

/// Runs one cycle after the other.
async fn drive(mut worker: Worker, mut triggers: Triggers, mut hints: Hints) {
    if worker.restore().await.is_none() {
        return;
    }
    let options = worker.options.clone();
    let mut schedule = Schedule::new(&options);
    // True if a trigger has started a cycle early since the last successful poll.
    let mut hurried = false;
    let mut was_away = false;
    loop {
        let started = Instant::now();
        let work = async {
            let end = worker.cycle().await;
            if let CycleEnd::Answered { report, .. } = &end {
                worker.save(report.changed).await;
                worker.report(report).await;
            }
            end
        };
        let end = triggers.beside(work).await;
        let ended = Instant::now();
        let is_away = matches!(end, CycleEnd::Failed(..));
        hints.looked(worker.registry.as_ref());
        if std::mem::replace(&mut was_away, is_away) && !is_away {
            hints.source_is_back();
        }
        // Refreshes take at most half of the time, independent of the cost of a cycle.
        let mut look_from = (ended + (ended - started)).max(started + options.min_gap);
        let mut may_look = true;
        let (wait, early, patience) = match end {
            CycleEnd::Answered {
                removal_pending, ..
            } => {
                hurried = false;
                let wait = schedule.after_success();
                let recheck = options.confirm_removal.filter(|_| removal_pending);
                let wait = recheck.map_or(wait, |rule| wait.min(rule.recheck));
                let behind = worker.validation.is_behind();
                let wait = if behind { wait.min(CATCH_UP) } else { wait };
                (wait, true, Duration::ZERO)
            }
            // A source that is back notifies of it. But one that fails and notifies of changes all the time
            // must not defeat the back-off: it is heard once, not before the first step, and not if it
            // requested a longer wait.
            CycleEnd::Failed(error, failures) => {
                let early = !hurried && error.retry_after().is_none();
                look_from = look_from.max(ended + schedule.first_step());
                may_look = error.retry_after().is_none() && !error.kind().is_lasting();
                (
                    schedule.after_error(failures, &error),
                    early,
                    schedule.first_step(),
                )
            }
            CycleEnd::ShuttingDown => return,
        };
        let now = Instant::now();
        let earliest = started + options.min_gap;
        let due = (now + wait).max(earliest);
        worker.publisher.next_cycle(due);
        let pause = Pause {
            due,
            earliest: earliest.max(now + patience),
            early,
            debounce: options.debounce,
            debounce_max: options.debounce_max,
        };
        loop {
            tokio::select! {
                biased;
                () = triggers.pause(pause) => {
                    hurried |= Instant::now() < due;
                    break;
                }
                services = hints.next(worker.registry.as_ref(), look_from, is_away), if may_look => {
                    if worker.looks_at(&services) {
                        break;
                    }
                    hints.looked(worker.registry.as_ref());
                }
            }
        }
    }
}
