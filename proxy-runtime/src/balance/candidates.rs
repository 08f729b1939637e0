//! The choices of a load balancing policy.

use std::fmt;
use std::sync::Arc;

use proxy_model::RequestHead;
use proxy_model::compiled::{Cluster, Destination};
use proxy_model::config::Metadata;

use super::{LoadBalancer, Random};
use crate::live::{Available, ClusterLive, DestinationState};
use crate::observe::DestinationMetrics;

/// The destinations of one cluster that may be picked now: healthy, in the right tier and zone, and
/// with a weight above 0. They are in the order of the configuration and numbered from 0.
///
/// Methods that take a position panic if it is not below [`len`](Self::len).
#[derive(Clone, Copy)]
pub struct Candidates<'a> {
    cluster: &'a Cluster,
    destinations: &'a [Arc<DestinationState>],
    live: &'a ClusterLive,
    random: &'a Random,
    available: &'a Available,
}

impl<'a> Candidates<'a> {
    pub(crate) fn new(
        cluster: &'a Cluster,
        destinations: &'a [Arc<DestinationState>],
        live: &'a ClusterLive,
        random: &'a Random,
        available: &'a Available,
    ) -> Self {
        Self {
            cluster,
            destinations,
            live,
            random,
            available,
        }
    }

    /// Number of candidates: at least 2 when a policy is called, unless it [is always
    /// asked](LoadBalancer::is_always_asked).
    #[allow(
        clippy::len_without_is_empty,
        reason = "a policy is never asked about none"
    )]
    pub fn len(&self) -> usize {
        self.available.members().len()
    }

    /// The cluster.
    pub fn cluster(&self) -> &'a Cluster {
        self.cluster
    }

    /// The destination at `position`.
    pub fn destination(&self, position: usize) -> &'a Destination {
        &self.cluster.destinations()[self.available.members()[position].0 as usize]
    }

    /// The metadata of the destination at `position`, if it has any.
    pub fn metadata(&self, position: usize) -> Option<&'a Metadata> {
        self.destination(position).config().metadata.as_ref()
    }

    /// The weight of the destination at `position`, relative to the others: never 0, and 1 if all
    /// are equal.
    pub fn weight(&self, position: usize) -> u32 {
        self.available.weight(position)
    }

    /// Number of requests that this proxy has in flight at the destination, over all workers.
    ///
    /// Reads the counters of each worker, which other cores write to: more expensive than
    /// `in_flight_here`.
    pub fn in_flight(&self, position: usize) -> u32 {
        self.metrics(position).in_flight()
    }

    /// Number of requests in flight that the calling worker of the [`Server`](crate::server) has
    /// sent there. On a thread that is no worker, those of all such threads. For a destination with
    /// fewer than about 100 requests per second, those of the whole proxy. Almost free.
    pub(crate) fn in_flight_here(&self, position: usize) -> u32 {
        self.metrics(position).in_flight_here()
    }

    fn metrics(&self, position: usize) -> &'a DestinationMetrics {
        let index = self.available.members()[position];
        self.destinations[index.0 as usize].metrics()
    }

    /// Position of the candidate whose id comes first, ignoring case.
    pub(crate) fn first_by_id(&self) -> usize {
        self.available.first()
    }

    /// Takes the next turn of the cluster: 0 for the first call, and one more for each later call
    /// from any thread. Turns survive a reload of the configuration. The number wraps around at the
    /// end of `u64`.
    pub fn next_turn(&self) -> u64 {
        self.live.next_turn()
    }

    /// The position that serves the given turn. Candidates take turns in proportion to their
    /// weights, evenly spread; with equal weights, in order.
    pub fn in_turn(&self, turn: u64) -> usize {
        self.available.in_turn(turn)
    }

    /// A random position, in proportion to the weights.
    pub fn draw(&self) -> usize {
        let share = self.random_below(self.available.total());
        self.available.owner(share)
    }

    /// Like [`draw`](Self::draw), without `position`. There must be at least one other candidate.
    pub(crate) fn draw_other(&self, position: usize) -> usize {
        // Skips the range of the excluded candidate, so that one random number is enough.
        let taken = self.available.shares(position);
        let share = self.random_below(self.available.total() - (taken.end - taken.start));
        self.available.owner(if share < taken.start {
            share
        } else {
            share + (taken.end - taken.start)
        })
    }

    /// Lets another policy pick among the candidates for which `keep` returns true: a filter before the policy.
    /// Allocates. `None` if no candidate is left, which rejects the request with 503.
    pub fn pick_among(
        &self,
        keep: impl FnMut(&usize) -> bool,
        policy: &dyn LoadBalancer,
        head: &dyn RequestHead,
    ) -> Option<usize> {
        let kept: Vec<usize> = (0..self.len()).filter(keep).collect();
        // A policy is asked only if there is a choice.
        if let [] | [_] = *kept {
            return kept.first().copied();
        }
        let members = self.available.members();
        let positions: Vec<usize> = kept.iter().map(|&i| members[i].0 as usize).collect();
        let weight = |position| self.available.weight_of(position);
        let narrowed = Available::of(self.cluster, &positions, weight);
        let candidates = Candidates {
            available: &narrowed,
            ..*self
        };
        // A policy of the program may return any number.
        kept.get(policy.pick(&candidates, head)?).copied()
    }

    /// A random number below `bound`; 0 if `bound` is 0. Tests can set the seed.
    pub(crate) fn random_below(&self, bound: u64) -> u64 {
        self.random.below(bound)
    }
}

impl fmt::Debug for Candidates<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map()
            .entries((0..self.len()).map(|i| {
                (
                    self.destination(i).id(),
                    (self.weight(i), self.in_flight(i)),
                )
            }))
            .finish()
    }
}
