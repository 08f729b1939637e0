//! What a policy may choose from.

use std::fmt;
use std::sync::Arc;

use proxy_model::DestinationId;
use proxy_model::compiled::{Cluster, Destination};
use proxy_model::config::Metadata;

use super::Random;
use crate::live::{Available, ClusterLive, DestinationState};
use crate::observe::DestinationMetrics;

/// The destinations of one cluster that may be picked at the moment: healthy, of the right tier and zone, and not of
/// weight 0. They are in the order of the configuration and counted from 0.
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

    /// How many there are: at least 2 when a policy is asked.
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

    /// Its id.
    pub fn id(&self, position: usize) -> &'a DestinationId {
        self.destination(position).id()
    }

    /// Its metadata, if it has any.
    pub fn metadata(&self, position: usize) -> Option<&'a Metadata> {
        self.destination(position).config().metadata.as_ref()
    }

    /// Its weight, relative to the others: never 0, and 1 if all are equal.
    pub fn weight(&self, position: usize) -> u32 {
        self.available.weight(position)
    }

    /// How many requests this proxy has in flight there, whatever worker they came by.
    ///
    /// To ask costs a look at the counters of each worker, which other cores write to.
    pub fn in_flight(&self, position: usize) -> u32 {
        self.metrics(position).in_flight()
    }

    /// How many of them came by the worker of the [`Server`](crate::server) that asks, or by threads that are no workers if it is
    /// one of those; of a destination with fewer than some 100 requests a second, all. To ask costs next to nothing.
    pub(crate) fn in_flight_here(&self, position: usize) -> u32 {
        self.metrics(position).in_flight_here()
    }

    fn metrics(&self, position: usize) -> &'a DestinationMetrics {
        let index = self.available.members()[position];
        self.destinations[index.0 as usize].metrics()
    }

    /// Position of the one whose id comes first, ignoring case.
    pub(crate) fn first_by_id(&self) -> usize {
        self.available.first()
    }

    /// The cluster's next turn: 0 for the first call, and one more for each call after it, whatever thread it comes
    /// from. Turns are kept when the configuration is reloaded. After the last `u64` comes 0.
    pub fn next_turn(&self) -> u64 {
        self.live.next_turn()
    }

    /// The position whose turn it is at `turn`: each in order if weights are equal, else as often as its weight says,
    /// well spread.
    pub fn in_turn(&self, turn: u64) -> usize {
        self.available.in_turn(turn)
    }

    /// A position drawn at random, each as often as its weight says.
    pub fn draw(&self) -> usize {
        let share = self.random_below(self.available.total());
        self.available.owner(share)
    }

    /// Like [`draw`](Self::draw), from the others than `position`, of which there must be one.
    pub(crate) fn draw_other(&self, position: usize) -> usize {
        let taken = self.available.shares(position);
        let share = self.random_below(self.available.total() - (taken.end - taken.start));
        self.available.owner(if share < taken.start {
            share
        } else {
            share + (taken.end - taken.start)
        })
    }

    /// A random number below `bound`; 0 if `bound` is 0. Tests can have it seeded.
    pub fn random_below(&self, bound: u64) -> u64 {
        self.random.below(bound)
    }
}

impl fmt::Debug for Candidates<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map()
            .entries((0..self.len()).map(|i| (self.id(i), (self.weight(i), self.in_flight(i)))))
            .finish()
    }
}
