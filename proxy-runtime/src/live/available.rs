//! The available destinations of a cluster, prepared for load balancing policies.

use proxy_model::compiled::{Cluster, DestinationIndex};
use tokio::time::Instant;

use crate::live::Assessment;

/// The available destinations of one cluster, with precomputed values for policies.
#[derive(Debug)]
pub(crate) struct Available {
    /// The epoch of the cluster's health; see [`ClusterLive`](crate::live::ClusterLive).
    epoch: u64,
    /// The earliest time at which an ejected destination returns. The list is out of date then.
    until: Option<Instant>,
    panic: bool,
    members: Box<[DestinationIndex]>,
    /// The weight of each member; empty if all are equal, which then is 1.
    weights: Box<[u32]>,
    /// Sum of the weights up to and including each member; empty when all are equal.
    cumulative: Box<[u64]>,
    /// Position of the member whose id comes first.
    first: usize,
    /// Distance between picks of the weighted round robin; see [`Self::in_turn`].
    stride: u64,
}

impl Available {
    /// Collects what `assessment` allows, for the health of `epoch`.
    pub(crate) fn new(
        cluster: &Cluster,
        assessment: &Assessment,
        epoch: u64,
        until: Option<Instant>,
    ) -> Self {
        let positions: Vec<usize> = assessment.eligible().collect();
        Self {
            epoch,
            until,
            panic: assessment.panic,
            ..match &assessment.hundredths {
                None => Self::of(cluster, &positions, |i| cluster.destinations()[i].weight()),
                Some(hundredths) => {
                    // Small numbers, so that turns are few and spread evenly.
                    let shared = positions.iter().map(|&i| u64::from(hundredths[i]));
                    let divisor = shared.fold(0, gcd).max(1);
                    Self::of(cluster, &positions, |i| {
                        u32::try_from(u64::from(hundredths[i]) / divisor).unwrap_or(u32::MAX)
                    })
                }
            }
        }
    }

    /// Collects the destinations at these positions of the configuration, in its order, with these weights.
    pub(crate) fn of(
        cluster: &Cluster,
        positions: &[usize],
        weight: impl Fn(usize) -> u32,
    ) -> Self {
        let destinations = cluster.destinations();
        let members: Box<[_]> = positions
            .iter()
            .map(|&i| DestinationIndex(u32::try_from(i).expect("a snapshot counts in u32")))
            .collect();
        let first = (0..positions.len())
            .min_by_key(|&i| destinations[positions[i]].id())
            .unwrap_or(0);

        let weight = |i: &usize| weight(*i);
        let equal = positions
            .windows(2)
            .all(|pair| weight(&pair[0]) == weight(&pair[1]));
        // Members of equal weight need no sums: each has one share.
        let weights: Box<[u32]> = if equal {
            Box::default()
        } else {
            positions.iter().map(weight).collect()
        };
        let cumulative: Box<[u64]> = weights
            .iter()
            .scan(0, |sum, &weight| {
                *sum += u64::from(weight);
                Some(*sum)
            })
            .collect();
        let stride = cumulative.last().copied().map_or(1, stride);
        Self {
            epoch: 0,
            until: None,
            panic: false,
            members,
            weights,
            cumulative,
            first,
            stride,
        }
    }

    /// True if the list is out of date, now that the health has the epoch `now`.
    #[inline]
    pub(crate) fn is_outdated(&self, now: u64) -> bool {
        self.epoch != now || self.until.is_some_and(|until| until <= Instant::now())
    }

    /// True if a destination is a member.
    pub(crate) fn has(&self, index: DestinationIndex) -> bool {
        self.members.binary_search(&index).is_ok()
    }

    /// True if health is ignored because no destination is healthy.
    pub(crate) fn is_panic(&self) -> bool {
        self.panic
    }

    /// The destinations, in the order of the configuration.
    pub(crate) fn members(&self) -> &[DestinationIndex] {
        &self.members
    }

    /// The weight of the member at `position`: never 0, and 1 if all are equal.
    pub(crate) fn weight(&self, position: usize) -> u32 {
        self.weights.get(position).copied().unwrap_or(1)
    }

    /// The weight of the member at a position of the configuration.
    pub(crate) fn weight_of(&self, configured: usize) -> u32 {
        let member = self
            .members
            .binary_search_by_key(&configured, |index| index.0 as usize);
        member.map_or(1, |member| self.weight(member))
    }

    /// Sum of all weights.
    pub(crate) fn total(&self) -> u64 {
        self.cumulative
            .last()
            .copied()
            .unwrap_or(self.members.len() as u64)
    }

    /// Position of the member whose id comes first.
    pub(crate) fn first(&self) -> usize {
        self.first
    }

    /// The member that owns the `share`th of all shares; `share` is below [`total`](Self::total).
    pub(crate) fn owner(&self, share: u64) -> usize {
        if self.cumulative.is_empty() {
            return usize::try_from(share).expect("shares of equal members are positions");
        }
        self.cumulative.partition_point(|end| *end <= share)
    }

    /// The shares that belong to the member at `position`.
    pub(crate) fn shares(&self, position: usize) -> std::ops::Range<u64> {
        if self.cumulative.is_empty() {
            return position as u64..position as u64 + 1;
        }
        let end = self.cumulative[position];
        end - u64::from(self.weights[position])..end
    }

    /// The member that serves the given turn: in proportion to the weights, evenly spread; with
    /// equal weights, in order.
    ///
    /// Turns walk over all shares in steps of `stride`, which is close to the golden section of
    /// their number and coprime to it. Any run of as many turns as there are shares visits each
    /// share exactly once, spread as evenly as a fixed step allows. A turn is computed from its
    /// number alone, without further state.
    pub(crate) fn in_turn(&self, turn: u64) -> usize {
        let total = self.total();
        if total == 0 {
            return 0;
        }
        // In 128 bits, since the product may exceed 64.
        let share = u128::from(turn % total) * u128::from(self.stride) % u128::from(total);
        self.owner(u64::try_from(share).expect("a remainder of a u64 is one"))
    }
}

/// The number coprime to `total` that is closest to its golden section.
fn stride(total: u64) -> u64 {
    let golden = (total as f64 * 0.618_033_988_749_894_9) as u64;
    // The number next to the golden section that has no common divisor with the total.
    (0..=total)
        .flat_map(|distance| [golden.saturating_sub(distance), golden + distance])
        .find(|&candidate| candidate > 0 && gcd(candidate, total) == 1)
        .unwrap_or(1)
}

fn gcd(mut a: u64, mut b: u64) -> u64 {
    while b > 0 {
        (a, b) = (b, a % b);
    }
    a
}
