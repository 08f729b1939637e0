//! Rounds of probes.

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

use super::round::{Target, run_round};
use crate::health::Probe;
use crate::live::DestinationKey;
use crate::progress::after;
use crate::proxy::Shared;

/// Probes under way at a time, over all clusters. A probe that waits for its turn is not late.
const PROBES: usize = 512;

/// How much longer or shorter than configured the wait between two rounds is, so that many clusters, and many proxies,
/// do not probe in step.
const JITTER: f64 = 0.1;

type Boxed<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// The probes of all clusters whose check is on. Everything runs in the task that polls it; dropped, all probes end.
pub(crate) struct ActiveChecks {
    prober: Prober,
    /// Clusters that `checks` looks after.
    watched: HashSet<ClusterId>,
    checks: FuturesUnordered<Boxed<ClusterId>>,
}

/// What every check needs.
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

    /// Begins to look after the clusters that the current generation checks and that are not looked after yet.
    pub(crate) fn follow(&mut self) {
        let generation = self.prober.shared.load_full();
        for (cluster, _) in generation.clusters() {
            if cluster.active_check().is_some() && !self.watched.contains(cluster.id()) {
                self.watch(cluster.id().clone());
            }
        }
    }

    /// Probes; never ends. Cancel-safe: what is under way goes on with the next call.
    pub(crate) async fn run(&mut self) {
        loop {
            let Some(ended) = self.checks.next().await else {
                return std::future::pending().await;
            };
            self.watched.remove(&ended);
            // The cluster may have come back while its check was ending.
            if Target::find(&self.prober.shared, &ended).is_some() {
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

/// What ended.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Scope {
    /// A round over the whole cluster.
    Whole,
    /// Probes that could not wait for that: of destinations that came, or that are asked something else now.
    AtOnce,
}

/// Looks after one cluster until it is gone or its check is off. Returns its id.
async fn check_cluster(prober: Prober, id: ClusterId) -> ClusterId {
    let mut generations = prober.shared.generations();
    generations.borrow_and_update();
    let Some(target) = Target::find(&prober.shared, &id) else {
        return id;
    };
    let mut check = ClusterCheck::begin(prober, target);
    loop {
        tokio::select! {
            Some((scope, keys)) = check.rounds.next() => check.ended(scope, &keys),
            () = sleep_until(check.next_round), if check.last_round.is_some() => check.start_whole(),
            changed = generations.changed() => {
                if changed.is_err() {
                    return id;
                }
                let Some(target) = Target::find(&check.prober.shared, &id) else {
                    return id;
                };
                check.follow(target);
            }
        }
    }
}

/// The check of one cluster.
struct ClusterCheck {
    prober: Prober,
    target: Target,
    rounds: FuturesUnordered<Boxed<(Scope, Vec<DestinationKey>)>>,
    /// Destinations whose first probe was started.
    known: HashSet<DestinationKey>,
    /// Destinations that are being probed, and by how many rounds: one that is asked something else now is probed again
    /// before the end of the round that asked what nobody wants to know any more.
    busy: HashMap<DestinationKey, usize>,
    /// End of the last whole round, and the interval at that time; `None` while one is under way.
    last_round: Option<(Instant, Duration)>,
    next_round: Instant,
}

impl ClusterCheck {
    /// Probes all destinations at once. A check that was off counts from nothing.
    fn begin(prober: Prober, target: Target) -> Self {
        let mut check = Self {
            prober,
            known: target.keys().into_iter().collect(),
            target,
            rounds: FuturesUnordered::new(),
            busy: HashMap::new(),
            last_round: None,
            next_round: Instant::now(),
        };
        check.target.count_anew(|_| true);
        check.start_whole();
        check
    }

    /// Goes on with the cluster as it is now. Destinations that are new are probed at once, and so are those that are
    /// asked something else now: what was found before stands until they have answered, but counts no more.
    fn follow(&mut self, target: Target) {
        let before = std::mem::replace(&mut self.target, target);
        let changed = self.target.asked_anew_since(&before);
        self.target.count_anew(|key| changed.contains(&key));
        let keys = self.target.keys();
        let known = &mut self.known;
        let at_once: Vec<_> = keys
            .iter()
            .copied()
            .filter(|key| known.insert(*key) || changed.contains(key))
            .collect();
        if known.len() > keys.len() {
            *known = keys.into_iter().collect();
        }
        if !at_once.is_empty() {
            self.start(Scope::AtOnce, at_once);
        }
        if let Some((ended, interval)) = self.last_round
            && interval != self.target.interval()
        {
            self.wait_from(ended);
        }
    }

    /// Starts a round over all destinations that are not being probed already.
    fn start_whole(&mut self) {
        self.last_round = None;
        let mut keys = self.target.keys();
        keys.retain(|key| !self.busy.contains_key(key));
        self.start(Scope::Whole, keys);
    }

    fn start(&mut self, scope: Scope, keys: Vec<DestinationKey>) {
        for key in &keys {
            *self.busy.entry(*key).or_default() += 1;
        }
        let (prober, target) = (self.prober.clone(), self.target.clone());
        self.rounds.push(Box::pin(async move {
            run_round(&prober, &target, &keys).await;
            (scope, keys)
        }));
    }

    fn ended(&mut self, scope: Scope, keys: &[DestinationKey]) {
        for key in keys {
            if let Entry::Occupied(mut rounds) = self.busy.entry(*key) {
                *rounds.get_mut() -= 1;
                if *rounds.get() == 0 {
                    rounds.remove();
                }
            }
        }
        if scope == Scope::Whole {
            self.wait_from(Instant::now());
        }
    }

    /// Waits for one interval from the end of the last round.
    fn wait_from(&mut self, ended: Instant) {
        let interval = self.target.interval();
        self.last_round = Some((ended, interval));
        self.next_round = after(ended, self.prober.shared.random().jitter(interval, JITTER));
    }
}
