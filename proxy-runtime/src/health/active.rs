//! Rounds of probes.

use std::collections::HashSet;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use proxy_model::ClusterId;
use tokio::sync::Semaphore;
use tokio::time::{Instant, sleep_until};

use super::Probe;
use super::round::{Target, run_round};
use crate::proxy::Shared;
use crate::state::DestinationKey;

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
pub(super) struct Prober {
    pub(super) shared: Arc<Shared>,
    pub(super) probe: Arc<dyn Probe>,
    pub(super) turns: Arc<Semaphore>,
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
enum Round {
    /// A round over the whole cluster.
    Whole,
    /// The first probes of destinations that came between two rounds.
    Newcomers,
}

/// Looks after one cluster until it is gone or its check is off. Returns its id.
async fn check_cluster(prober: Prober, id: ClusterId) -> ClusterId {
    let mut generations = prober.shared.generations();
    let mut rounds: FuturesUnordered<Boxed<(Round, Vec<DestinationKey>)>> = FuturesUnordered::new();
    let mut known = HashSet::new();
    let mut busy = HashSet::new();
    // The end of the last round and the interval that the next one was set by; `None` while a round is under way.
    let mut waiting: Option<(Instant, Duration)> = None;
    let mut next_round = Instant::now();
    let mut is_first = true;

    loop {
        generations.borrow_and_update();
        let Some(target) = Target::find(&prober.shared, &id) else {
            return id;
        };
        let keys = target.keys();
        if is_first {
            is_first = false;
            known.extend(keys.iter().copied());
            busy.extend(keys.iter().copied());
            rounds.push(start(&prober, target.clone(), Round::Whole, keys));
        } else {
            known.retain(|key| keys.contains(key));
            let new: Vec<_> = keys.into_iter().filter(|key| known.insert(*key)).collect();
            if !new.is_empty() {
                busy.extend(new.iter().copied());
                rounds.push(start(&prober, target.clone(), Round::Newcomers, new));
            }
        }
        if let Some((ended, interval)) = waiting
            && interval != target.interval()
        {
            waiting = Some((ended, target.interval()));
            next_round = ended + prober.shared.random().jitter(target.interval(), JITTER);
        }

        tokio::select! {
            Some((round, keys)) = rounds.next() => {
                for key in keys {
                    busy.remove(&key);
                }
                if matches!(round, Round::Whole) {
                    let ended = Instant::now();
                    waiting = Some((ended, target.interval()));
                    next_round = ended + prober.shared.random().jitter(target.interval(), JITTER);
                }
            }
            () = sleep_until(next_round), if waiting.is_some() => {
                waiting = None;
                let keys: Vec<_> = target.keys().into_iter().filter(|key| busy.insert(*key)).collect();
                rounds.push(start(&prober, target, Round::Whole, keys));
            }
            changed = generations.changed() => {
                if changed.is_err() {
                    return id;
                }
            }
        }
    }
}

fn start(
    prober: &Prober,
    target: Target,
    round: Round,
    keys: Vec<DestinationKey>,
) -> Boxed<(Round, Vec<DestinationKey>)> {
    let prober = prober.clone();
    Box::pin(async move {
        run_round(&prober, &target, &keys).await;
        (round, keys)
    })
}
