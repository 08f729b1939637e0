//! The schedule of probes.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use proxy_model::ClusterId;
use tokio::sync::Semaphore;
use tokio::time::{Instant, sleep_until};

use super::round::{ProbeTarget, run_cycle};
use crate::health::Probe;
use crate::live::DestinationKey;
use crate::progress::after;
use crate::proxy::Shared;

/// Maximum of probes in flight over all clusters. The timeout of a probe does not include the wait
/// for a slot.
const PROBES: usize = 512;

/// The random share by which the interval between two cycles varies, so that many clusters, and
/// many proxies, do not probe at the same time.
pub(super) const JITTER: f64 = 0.1;

type Boxed<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// The probes of all clusters with an active check. All work runs in the task that polls it;
/// dropping it ends all probes.
pub(crate) struct ActiveChecks {
    prober: Prober,
    /// Clusters that `checks` covers.
    watched: HashSet<ClusterId>,
    checks: FuturesUnordered<Boxed<ClusterId>>,
}

/// The dependencies of every check.
#[derive(Clone)]
pub(crate) struct Prober {
    pub(crate) shared: Arc<Shared>,
    pub(crate) probe: Arc<dyn Probe>,
    pub(crate) turns: Arc<Semaphore>,
}

impl ActiveChecks {
    pub(crate) fn new(shared: Arc<Shared>, probe: Arc<dyn Probe>) -> Self {
        Self {
            prober: Prober {
                shared,
                probe,
                turns: Arc::new(Semaphore::new(PROBES)),
            },
            watched: HashSet::new(),
            checks: FuturesUnordered::new(),
        }
    }

    /// Starts checks for the clusters of the current generation that need one and have none.
    pub(crate) fn follow(&mut self) {
        let generation = self.prober.shared.load_full();
        for (cluster, _) in generation.clusters() {
            if cluster.active_check().is_some() && !self.watched.contains(cluster.id()) {
                self.watch(cluster.id().clone());
            }
        }
    }

    /// Runs the probes; never returns. Cancel safe: work in flight continues with the next call.
    pub(crate) async fn run(&mut self) {
        loop {
            let Some(ended) = self.checks.next().await else {
                // No cluster has a check. `follow` adds one after this future was dropped.
                return std::future::pending().await;
            };
            self.watched.remove(&ended);
            // The cluster may have been added again while its check was ending.
            if ProbeTarget::find(&self.prober.shared, &ended).is_some() {
                self.watch(ended);
            }
        }
    }

    fn watch(&mut self, id: ClusterId) {
        self.watched.insert(id.clone());
        self.checks
            .push(Box::pin(check_cluster(self.prober.clone(), id)));
    }
}

/// The kind of a cycle that has ended.
#[derive(Clone, Copy, PartialEq, Eq)]
enum CycleKind {
    /// A cycle over the whole cluster.
    Whole,
    /// Probes of some destinations: those that are new, those whose check has changed, and those in doubt.
    AtOnce,
}

/// Checks one cluster until it is removed or its check is disabled. Returns its id.
async fn check_cluster(prober: Prober, id: ClusterId) -> ClusterId {
    let mut generations = prober.shared.generations();
    // Later changes wake the loop below.
    generations.borrow_and_update();
    let Some(target) = ProbeTarget::find(&prober.shared, &id) else {
        return id;
    };
    let mut check = ClusterCheck::begin(prober, target);
    loop {
        tokio::select! {
            Some((scope, keys)) = check.rounds.next() => check.ended(scope, &keys),
            () = sleep_until(check.next_round), if check.last_round.is_some() => check.start_whole(),
            () = sleep_until(check.next_fast.unwrap_or(check.next_round)), if check.next_fast.is_some() => {
                check.start_fast();
            }
            changed = generations.changed() => {
                if changed.is_err() {
                    return id;
                }
                let Some(target) = ProbeTarget::find(&check.prober.shared, &id) else {
                    return id;
                };
                check.follow(target);
            }
        }
    }
}

/// The active check of one cluster.
struct ClusterCheck {
    prober: Prober,
    target: ProbeTarget,
    rounds: FuturesUnordered<Boxed<(CycleKind, Vec<DestinationKey>)>>,
    /// Destinations whose first probe was started.
    known: HashSet<DestinationKey>,
    /// Destinations with probes in flight, and the number of cycles that probe them. A destination
    /// whose check changes is probed again before the outdated cycle has ended.
    busy: HashMap<DestinationKey, usize>,
    /// The end of the last whole cycle, and the interval at that time; `None` during a cycle.
    last_round: Option<(Instant, Duration)>,
    next_round: Instant,
    /// The time of the next probe of destinations in doubt, if there are any.
    next_fast: Option<Instant>,
}

impl ClusterCheck {
    /// Probes all destinations at once, and resets their counts of consecutive results.
    fn begin(prober: Prober, target: ProbeTarget) -> Self {
        let mut check = Self {
            prober,
            known: target.keys().into_iter().collect(),
            target,
            rounds: FuturesUnordered::new(),
            busy: HashMap::new(),
            last_round: None,
            next_round: Instant::now(),
            next_fast: None,
        };
        // The check was disabled before, so earlier results say nothing about a sequence.
        check.target.restart_counts(|_| true);
        check.start_whole();
        check
    }

    /// Continues with a new generation. Probes destinations that are new, or whose check has
    /// changed, at once. Health stays until the result arrives; counts of consecutive results are
    /// reset.
    fn follow(&mut self, target: ProbeTarget) {
        let before = std::mem::replace(&mut self.target, target);
        let changed = self.target.changed_since(&before);
        self.target.restart_counts(|key| changed.contains(&key));
        let keys = self.target.keys();
        let known = &mut self.known;
        let at_once: Vec<_> = keys
            .iter()
            .copied()
            .filter(|key| known.insert(*key) || changed.contains(key))
            .collect();
        // Removed destinations are dropped here, so that the set does not grow with each reload.
        if known.len() > keys.len() {
            *known = keys.into_iter().collect();
        }
        if !at_once.is_empty() {
            self.start(CycleKind::AtOnce, at_once);
        }
        // A new interval counts from the end of the last cycle.
        if let Some((ended, interval)) = self.last_round
            && interval != self.target.interval()
        {
            self.wait_from(ended);
        }
    }

    /// Starts a cycle over all destinations that have no probe in flight.
    fn start_whole(&mut self) {
        self.last_round = None;
        let mut keys = self.target.keys();
        keys.retain(|key| !self.busy.contains_key(key));
        self.start(CycleKind::Whole, keys);
    }

    /// Probes the destinations in doubt that have no probe in flight.
    fn start_fast(&mut self) {
        self.next_fast = None;
        let mut keys = self.target.in_doubt();
        keys.retain(|key| !self.busy.contains_key(key));
        if !keys.is_empty() {
            self.start(CycleKind::AtOnce, keys);
        }
    }

    fn start(&mut self, scope: CycleKind, keys: Vec<DestinationKey>) {
        // Rounds may overlap, so each one counts.
        for key in &keys {
            *self.busy.entry(*key).or_default() += 1;
        }
        let (prober, target) = (self.prober.clone(), self.target.clone());
        self.rounds.push(Box::pin(async move {
            run_cycle(&prober, &target, &keys).await;
            (scope, keys)
        }));
    }

    fn ended(&mut self, scope: CycleKind, keys: &[DestinationKey]) {
        for key in keys {
            if let Entry::Occupied(mut rounds) = self.busy.entry(*key) {
                *rounds.get_mut() -= 1;
                if *rounds.get() == 0 {
                    rounds.remove();
                }
            }
        }
        // Fast rounds do not move the usual ones.
        if scope == CycleKind::Whole {
            self.wait_from(Instant::now());
        }
        if let Some(fast) = self.target.fast_interval()
            && self.next_fast.is_none()
            && !self.target.in_doubt().is_empty()
        {
            let wait = self.prober.shared.random().jitter(fast, JITTER);
            self.next_fast = Some(after(Instant::now(), wait));
        }
    }

    /// Schedules the next cycle one interval after `ended`.
    fn wait_from(&mut self, ended: Instant) {
        let interval = self.target.interval();
        self.last_round = Some((ended, interval));
        self.next_round = after(ended, self.prober.shared.random().jitter(interval, JITTER));
    }
}
