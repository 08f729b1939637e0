//! The discoverer.

mod builder;
mod converting;
mod decisions;
mod making;
#[cfg(test)]
mod tests;

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use discovery_core::{
    CycleReport, DiscoverError, Discoverer, Discovery, Runner, RunnerOptions, ServiceOutcome,
    UnreachableService,
};
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::{Semaphore, watch};
use tokio::time::{Instant, sleep_until};

pub use self::builder::ServiceFabric;
use self::converting::{Conversion, Converted, ParsedServices};
use self::decisions::Rejections;
pub use self::decisions::{Decision, Decisions, Verdict};
use crate::health::{HealthReport, Reporter, Subjects, reports_of};
use crate::labels::ServiceParser;
use crate::options::ServiceFabricOptions;
use crate::topology::{Memory, Topology};

/// The time limit of one cycle. The first cycle of a large cluster behind a slow gateway takes minutes.
const CYCLE_TIMEOUT: Duration = Duration::from_secs(10 * 60);

/// The time limit of the reports about one cycle.
const REPORT_TIMEOUT: Duration = Duration::from_secs(30);

/// Discovers the services of a Service Fabric cluster. [`ServiceFabric`] makes one.
///
/// Clones share everything: one can be given to a runner, and another used to read the
/// [`decisions`](Self::decisions).
#[derive(Clone)]
pub struct ServiceFabricDiscoverer {
    inner: Arc<Inner>,
}

struct Inner {
    name: Arc<str>,
    topology: Topology,
    parser: Arc<ServiceParser>,
    options: ServiceFabricOptions,
    state: Mutex<Arc<State>>,
    /// Held while labels are parsed, on a thread that cannot be stopped.
    parsing: Arc<Semaphore>,
    /// The start of the next cycle, if it is earlier than the interval.
    wake: watch::Sender<Option<Instant>>,
    reporter: Reporter,
    rejections: Mutex<Rejections>,
    /// Services that requests do not get through to, until a cycle has read them.
    unreachable: Mutex<HashSet<Arc<str>>>,
}

/// The state kept between cycles.
#[derive(Debug, Default)]
struct State {
    memory: Arc<Memory>,
    parsed: Arc<ParsedServices>,
    decisions: Arc<Decisions>,
    subjects: Arc<Subjects>,
}

impl ServiceFabricDiscoverer {
    /// Creates a runner for the discoverer, with options derived from its own. Filters, validators and a
    /// file that survives restarts may still be added.
    pub fn runner(&self) -> Runner {
        Runner::new(self.clone())
            .options(self.runner_options())
            .required(!self.inner.options.allow_start_before_discovery)
    }

    /// The options of [`runner`](Self::runner), to change some of them.
    ///
    /// Services are converted in the order of their applications and names. If two claim the same cluster,
    /// the first one gets it, unless the other one already has it.
    pub fn runner_options(&self) -> RunnerOptions {
        let mut options = RunnerOptions::default()
            .with_interval(self.inner.options.discovery_period)
            .with_discover_timeout(CYCLE_TIMEOUT)
            .with_report_timeout(REPORT_TIMEOUT)
            .with_unread_grace(self.inner.options.unread_grace)
            .with_keep_order(true);
        options.persist.clone_from(&self.inner.options.persist);
        options.confirm_removal = self.inner.options.confirm_removal;
        // A credential may be renewed at any time, so a rejection needs no longer wait than a success.
        options.backoff_max = options.backoff_max.min(self.inner.options.discovery_period);
        options
    }

    /// Returns the decision for each application and service as of the last cycle, with its reasons.
    pub fn decisions(&self) -> Decisions {
        let decisions = Arc::clone(&self.state().decisions);
        let rejections = self.inner.rejections.lock();
        rejections.applied_to(&decisions)
    }

    /// The reports about health that a cycle with this result gives rise to, without sending them.
    pub fn health_reports(&self, report: &CycleReport) -> Vec<HealthReport> {
        reports_of(report, &self.state().subjects, &self.inner.options)
    }

    fn state(&self) -> Arc<State> {
        Arc::clone(&self.lock())
    }

    fn lock(&self) -> MutexGuard<'_, Arc<State>> {
        // It is replaced as a whole.
        self.inner.state.lock()
    }
}

#[async_trait]
impl Discoverer for ServiceFabricDiscoverer {
    fn name(&self) -> &str {
        &self.inner.name
    }

    async fn discover(&self) -> Result<Discovery, DiscoverError> {
        let inner = &*self.inner;
        inner.wake.send_replace(None);
        let before = self.state();
        let unreachable = inner.unreachable.lock().clone();
        let memory = Arc::new(inner.topology.read(&before.memory, &unreachable).await?);
        let conversion = Conversion {
            parser: Arc::clone(&inner.parser),
            memory: Arc::clone(&memory),
            before: Arc::clone(&before.parsed),
            reports_replicas: inner.options.report_replicas_health,
        };
        let Converted {
            mut discovery,
            parsed,
            decisions,
            subjects,
        } = conversion.run(&inner.parsing).await?;
        discovery.problems.extend(inner.reporter.rejection());
        let wake = inner.topology.wake(&memory);
        *self.lock() = Arc::new(State {
            memory,
            parsed: Arc::new(parsed),
            decisions: Arc::new(decisions),
            subjects: Arc::new(subjects),
        });
        inner.wake.send_replace(wake);
        let mut waiting = inner.unreachable.lock();
        waiting.retain(|name| !unreachable.contains(name));
        Ok(discovery)
    }

    async fn changed(&self) {
        let mut wake = self.inner.wake.subscribe();
        loop {
            let at = *wake.borrow_and_update();
            let due = async {
                match at {
                    Some(at) => sleep_until(at).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                () = due => {
                    // Set once: the next cycle sets it again.
                    self.inner.wake.send_if_modified(|current| {
                        let mine = *current == at;
                        if mine {
                            *current = None;
                        }
                        mine
                    });
                    return;
                }
                // The sender is in `self`, so the channel is open.
                _ = wake.changed() => {}
            }
        }
    }

    /// Makes the next cycle read their partitions and replicas, and nothing else before it is due. The
    /// probe would not detect instances that came back elsewhere with their ids, nor changed roles of
    /// replicas.
    fn unreachable(&self, services: &[UnreachableService]) -> bool {
        let names = services.iter().map(|service| Arc::clone(&service.name));
        self.inner.unreachable.lock().extend(names);
        true
    }

    async fn published(&self, report: &CycleReport) {
        let quarantined = report
            .services
            .iter()
            .filter(|service| matches!(service.outcome, ServiceOutcome::Quarantined { .. }));
        let rejections: HashMap<_, _> = quarantined
            .map(|service| (Arc::clone(&service.name), service.problems.clone()))
            .collect();
        {
            let mut known = self.inner.rejections.lock();
            *known = Rejections::new(rejections);
        }
        let reports = self.health_reports(report);
        self.inner.reporter.send(reports).await;
    }
}

impl fmt::Debug for ServiceFabricDiscoverer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServiceFabricDiscoverer")
            .field("name", &self.inner.name)
            .field("options", &self.inner.options)
            .finish_non_exhaustive()
    }
}
