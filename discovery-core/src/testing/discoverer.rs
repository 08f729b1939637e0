//! A discoverer that a test controls.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::{Notify, watch};

use crate::discoverer::Discoverer;
use crate::discovery::{DiscoveredService, Discovery};
use crate::error::DiscoverError;
use crate::report::CycleReport;
use crate::unreachable::UnreachableService;

/// A [`Discoverer`] whose results are queued by a test. When the queue is empty it repeats its last
/// successful result, at first an empty one. Clones share the script.
///
/// ```
/// use discovery_core::testing::ScriptedDiscoverer;
/// use discovery_core::{ConfigProvider, DiscoverError, DiscoveredService, Runner, SourceState};
/// use proxy_model::config::ProxyConfig;
///
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() {
/// let source = ScriptedDiscoverer::new("script");
/// source.answer([DiscoveredService::configured("web", ProxyConfig::default())]);
/// source.fail(DiscoverError::transient("down"));
///
/// let provider = Runner::new(source.clone()).start();
/// let mut states = provider.subscribe();
/// let live = states.wait_for(|state| state.status.state == SourceState::Live).await;
/// assert!(live.unwrap().config.is_some());
/// let failing = states.wait_for(|state| state.status.state == SourceState::Failing).await;
/// assert!(failing.unwrap().config.is_some());
/// assert_eq!(source.calls(), 2);
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct ScriptedDiscoverer {
    name: Arc<str>,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    script: Mutex<Script>,
    calls: watch::Sender<usize>,
    reports: watch::Sender<Vec<Arc<CycleReport>>>,
    changed: Notify,
    /// The reports of services that requests cannot reach.
    unreachable: Mutex<Vec<UnreachableService>>,
    ignores_unreachable: AtomicBool,
}

#[derive(Debug, Default)]
struct Script {
    steps: VecDeque<Step>,
    last: Discovery,
}

#[derive(Debug)]
enum Step {
    Answer(Discovery),
    Fail(DiscoverError),
    Hang,
    Panic,
    Delay(Duration),
}

impl ScriptedDiscoverer {
    /// Creates a source with an empty script.
    pub fn new(name: impl Into<Arc<str>>) -> Self {
        Self {
            name: name.into(),
            shared: Arc::new(Shared {
                script: Mutex::default(),
                calls: watch::Sender::new(0),
                reports: watch::Sender::new(Vec::new()),
                changed: Notify::new(),
                unreachable: Mutex::default(),
                ignores_unreachable: AtomicBool::new(false),
            }),
        }
    }

    /// Queues a result with these services.
    pub fn answer(&self, services: impl IntoIterator<Item = DiscoveredService>) {
        self.answer_with(services.into_iter().collect());
    }

    /// Queues a result.
    pub fn answer_with(&self, discovery: Discovery) {
        self.push(Step::Answer(discovery));
    }

    /// Queues an error.
    pub fn fail(&self, error: DiscoverError) {
        self.push(Step::Fail(error));
    }

    /// Queues a call that never returns.
    pub fn hang(&self) {
        self.push(Step::Hang);
    }

    /// Queues a call that panics.
    pub fn panic(&self) {
        self.push(Step::Panic);
    }

    /// Delays the call that gets the next step by `time`.
    pub fn delay(&self, time: Duration) {
        self.push(Step::Delay(time));
    }

    /// Removes all queued results.
    pub fn clear(&self) {
        self.script().steps.clear();
    }

    /// Notifies of a change, like an event of the source.
    pub fn trigger(&self) {
        self.shared.changed.notify_one();
    }

    /// Sets whether the source ignores reports of unreachable services. Default: it refreshes them.
    pub fn ignore_unreachable(&self, ignore: bool) {
        let ignores = &self.shared.ignores_unreachable;
        ignores.store(ignore, Ordering::Relaxed);
    }

    /// Takes the services that were reported as unreachable since the last call.
    pub fn take_unreachable(&self) -> Vec<UnreachableService> {
        std::mem::take(&mut *self.shared.unreachable.lock())
    }

    /// Number of polls.
    pub fn calls(&self) -> usize {
        *self.shared.calls.borrow()
    }

    /// Waits until the source was polled this often.
    ///
    /// # Cancel safety
    ///
    /// May be dropped at any time.
    pub async fn wait_for_calls(&self, calls: usize) {
        let mut counts = self.shared.calls.subscribe();
        // The sender is in `self`, so the channel is open.
        let _ = counts.wait_for(|count| *count >= calls).await;
    }

    /// The reports that the source was given, cycle by cycle.
    pub fn reports(&self) -> Vec<Arc<CycleReport>> {
        self.shared.reports.borrow().clone()
    }

    /// Waits until the source received this many reports.
    ///
    /// # Cancel safety
    ///
    /// May be dropped at any time.
    pub async fn wait_for_reports(&self, reports: usize) -> Vec<Arc<CycleReport>> {
        let mut received = self.shared.reports.subscribe();
        match received.wait_for(|list| list.len() >= reports).await {
            Ok(list) => list.clone(),
            Err(_) => Vec::new(),
        }
    }

    fn push(&self, step: Step) {
        self.script().steps.push_back(step);
    }

    fn script(&self) -> MutexGuard<'_, Script> {
        self.shared.script.lock()
    }
}

#[async_trait]
impl Discoverer for ScriptedDiscoverer {
    fn name(&self) -> &str {
        &self.name
    }

    async fn discover(&self) -> Result<Discovery, DiscoverError> {
        self.shared.calls.send_modify(|calls| *calls += 1);
        loop {
            let step = self.script().steps.pop_front();
            match step {
                Some(Step::Delay(time)) => tokio::time::sleep(time).await,
                Some(Step::Fail(error)) => return Err(error),
                Some(Step::Hang) => std::future::pending().await,
                Some(Step::Panic) => panic!("as the script says"),
                Some(Step::Answer(discovery)) => {
                    self.script().last = discovery.clone();
                    return Ok(discovery);
                }
                None => return Ok(self.script().last.clone()),
            }
        }
    }

    async fn changed(&self) {
        self.shared.changed.notified().await;
    }

    fn unreachable(&self, services: &[UnreachableService]) -> bool {
        self.shared.unreachable.lock().extend_from_slice(services);
        !self.shared.ignores_unreachable.load(Ordering::Relaxed)
    }

    async fn published(&self, report: &CycleReport) {
        let report = Arc::new(report.clone());
        self.shared.reports.send_modify(|list| list.push(report));
    }
}
