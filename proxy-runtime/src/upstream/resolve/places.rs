//! Permits for concurrent look-ups.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use parking_lot::Mutex;
use proxy_model::ClusterId;
use tokio::sync::oneshot;

/// Permits that clusters share.
///
/// A cluster gets another permit while it has fewer than are free. A cluster with many hanging
/// names therefore holds at most half, and every other cluster can get one. Waiting clusters take
/// turns.
pub(super) struct Permits(Mutex<PermitState>);

struct PermitState {
    free: usize,
    /// Clusters that hold permits or wait.
    clusters: HashMap<ClusterId, Cluster>,
    /// Waiting clusters in the order of their turns.
    turns: VecDeque<ClusterId>,
}

#[derive(Default)]
struct Cluster {
    taken: usize,
    waiting: VecDeque<oneshot::Sender<Permit>>,
}

/// A permit. Dropping it releases it.
pub(super) struct Permit {
    places: Arc<Permits>,
    cluster: ClusterId,
}

impl Permits {
    pub(super) fn new(most: usize) -> Arc<Self> {
        Arc::new(Self(Mutex::new(PermitState {
            free: most,
            clusters: HashMap::new(),
            turns: VecDeque::new(),
        })))
    }

    /// Returns a permit if the cluster may have one.
    pub(super) fn try_take(self: &Arc<Self>, cluster: &ClusterId) -> Option<Permit> {
        let taken = self.0.lock().take(cluster);
        taken.then(|| self.place(cluster))
    }

    /// Waits for a permit.
    ///
    /// Cancel safe: dropping the future gives up its turn.
    pub(super) async fn take(self: &Arc<Self>, cluster: &ClusterId) -> Permit {
        let waiting = {
            let mut state = self.0.lock();
            if state.take(cluster) {
                drop(state);
                return self.place(cluster);
            }
            state.wait(cluster)
        };
        waiting
            .await
            .expect("the places, which are borrowed, keep the sender until it is its turn")
    }

    fn place(self: &Arc<Self>, cluster: &ClusterId) -> Permit {
        Permit {
            places: Arc::clone(self),
            cluster: cluster.clone(),
        }
    }

    #[cfg(test)]
    pub(super) fn free(&self) -> usize {
        self.0.lock().free
    }
}

impl PermitState {
    /// Takes a permit for the cluster. Returns false if there is none.
    fn take(&mut self, cluster: &ClusterId) -> bool {
        let taken = self.clusters.get(cluster).map_or(0, |it| it.taken);
        // Not more than are left for others, so that no cluster takes all.
        if taken >= self.free {
            return false;
        }
        self.free -= 1;
        self.clusters.entry(cluster.clone()).or_default().taken += 1;
        true
    }

    fn wait(&mut self, cluster: &ClusterId) -> oneshot::Receiver<Permit> {
        let (sender, receiver) = oneshot::channel();
        let waiting = &mut self.clusters.entry(cluster.clone()).or_default().waiting;
        // Abandoned waits would only make the queue longer.
        waiting.retain(|waiting| !waiting.is_closed());
        let is_first = waiting.is_empty();
        waiting.push_back(sender);
        // A cluster has one turn, however many callers wait.
        if is_first && !self.turns.contains(cluster) {
            self.turns.push_back(cluster.clone());
        }
        receiver
    }

    /// The next waiting caller that may have a permit, by turns.
    fn next(&mut self) -> Option<(ClusterId, oneshot::Sender<Permit>)> {
        for _ in 0..self.turns.len() {
            let cluster = self.turns.pop_front()?;
            let Some(entry) = self.clusters.get_mut(&cluster) else {
                continue;
            };
            entry.waiting.retain(|waiting| !waiting.is_closed());
            if entry.waiting.is_empty() {
                self.forget(&cluster);
                continue;
            }
            let next = match entry.taken < self.free {
                true => entry.waiting.pop_front(),
                false => None,
            };
            if next.is_some() {
                entry.taken += 1;
                self.free -= 1;
            }
            // Back to the end of the queue, even without a permit.
            self.turns.push_back(cluster.clone());
            if let Some(next) = next {
                return Some((cluster, next));
            }
        }
        None
    }

    fn forget(&mut self, cluster: &ClusterId) {
        if let Some(entry) = self.clusters.get(cluster)
            && entry.taken == 0
            && entry.waiting.is_empty()
        {
            self.clusters.remove(cluster);
        }
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let mut state = self.places.0.lock();
        state.free += 1;
        if let Some(entry) = state.clusters.get_mut(&self.cluster) {
            entry.taken -= 1;
        }
        state.forget(&self.cluster);
        // Sent without the lock: a failed send drops a permit, which locks again.
        let mut turns = Vec::new();
        while let Some(turn) = state.next() {
            turns.push(turn);
        }
        drop(state);
        for (cluster, waiting) in turns {
            // A permit for a caller that is gone is released again by the failed send.
            let _ = waiting.send(self.places.place(&cluster));
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn one_cluster_has_half_at_most_and_leaves_one_for_each_other() {
        let places = Permits::new(8);
        let greedy: ClusterId = "greedy".into();
        let held: Vec<_> = std::iter::from_fn(|| places.try_take(&greedy)).collect();
        assert_eq!(held.len(), 4);
        let others: Vec<_> = (0..4)
            .map_while(|number| places.try_take(&format!("c{number}").into()))
            .collect();
        assert_eq!((others.len(), places.free()), (4, 0));
        assert!(places.try_take(&"late".into()).is_none());
        drop((held, others));
        assert_eq!(places.free(), 8);
        assert!(places.0.lock().clusters.is_empty());
    }

    #[tokio::test]
    async fn those_that_wait_have_turns() {
        let places = Permits::new(1);
        let [a, b]: [ClusterId; 2] = ["a".into(), "b".into()];
        let held = places.try_take(&a).unwrap();
        let mut first = Box::pin(places.take(&a));
        let mut second = Box::pin(places.take(&a));
        let mut other = Box::pin(places.take(&b));
        for waiting in [&mut first, &mut second, &mut other] {
            assert!(waiting.as_mut().now_or_never().is_none());
        }
        drop(held);
        let held = first.as_mut().now_or_never().expect("it was first");
        drop(held);
        assert!(second.as_mut().now_or_never().is_none());
        let held = other.as_mut().now_or_never().expect("it is another's turn");
        // A caller that has gone is skipped.
        drop(second);
        drop(held);
        assert_eq!(places.free(), 1);
        assert!(places.0.lock().clusters.is_empty());
    }

    proptest! {
        /// Permits are neither lost nor duplicated by any sequence of operations.
        #[test]
        fn places_are_neither_lost_nor_made(steps in proptest::collection::vec((0_u8..4, 0_u8..4), 0..200)) {
            let places = Permits::new(5);
            let (mut held, mut waiting) = (Vec::new(), Vec::new());
            for (step, cluster) in steps {
                let id: ClusterId = format!("c{cluster}").into();
                match step {
                    0 => held.extend(places.try_take(&id)),
                    1 => {
                        let places = Arc::clone(&places);
                        let mut take = Box::pin(async move { places.take(&id).await });
                        match take.as_mut().now_or_never() {
                            Some(place) => held.push(place),
                            None => waiting.push(take),
                        }
                    }
                    2 if !held.is_empty() => drop(held.swap_remove(usize::from(cluster) % held.len())),
                    3 if !waiting.is_empty() => drop(waiting.swap_remove(usize::from(cluster) % waiting.len())),
                    _ => {}
                }
                let (ready, still): (Vec<_>, Vec<_>) = waiting
                    .into_iter()
                    .map(|mut take| (take.as_mut().now_or_never(), take))
                    .partition(|(place, _)| place.is_some());
                held.extend(ready.into_iter().filter_map(|(place, _)| place));
                waiting = still.into_iter().map(|(_, take)| take).collect();
                prop_assert_eq!(places.free() + held.len(), 5);
                // While all permits are free no caller waits.
                prop_assert!(waiting.is_empty() || !held.is_empty());
            }
            drop(waiting);
            drop(held);
            prop_assert_eq!(places.free(), 5);
            prop_assert!(places.0.lock().clusters.is_empty());
        }
    }
}
