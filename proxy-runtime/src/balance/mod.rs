//! Load balancing: the choice of a destination among those of a cluster.
//!
//! The policies of YARP have their names there, and all honour weights: [`PowerOfTwoChoices`] (the
//! default of a cluster), [`RoundRobin`], [`LeastRequests`], [`Random`](RandomChoice) and
//! [`FirstAlphabetical`]. A program adds a policy by implementing [`LoadBalancer`] and registering
//! it with [`ProxyBuilder::balancer`](crate::build::ProxyBuilder::balancer).
//!
//! Requests in flight are counted per proxy, over all of its services, from the pick of the
//! destination to the end of the response. At a busy destination (from 100 requests per second)
//! each worker of a [`Server`](crate::server) keeps a count of its own. `PowerOfTwoChoices`
//! compares the counts of its worker, which causes no traffic between cores; `LeastRequests`
//! compares the sums. Turns and connection limits are shared by all workers. With a single
//! candidate no policy is called, and no turn is taken.
//!
//! If no connection to the picked destination can be opened, the policy is called once more with
//! the candidates that would remain if that destination were unhealthy. These may be of the next
//! tier or another zone.
//!
//! # Differences from YARP
//!
//! * A destination that cannot be reached is retried elsewhere; in YARP, its requests fail.
//! * Destinations have weights, which all policies honour.
//! * `PowerOfTwoChoices` compares the counts of one worker at busy destinations; in YARP, those of all threads.
//! * Turns follow the order of the configuration; in YARP, that of a hash table.

mod candidates;
mod policies;
mod random;
mod registry;

pub use self::candidates::Candidates;
pub use self::policies::{
    FirstAlphabetical, LeastRequests, PowerOfTwoChoices, RandomChoice, RoundRobin,
};
pub(crate) use self::random::Random;
pub(crate) use self::registry::{Balancer, Balancers};
use proxy_model::RequestHead;

#[cfg(test)]
mod tests;

/// Picks one of a cluster's available destinations for a request.
///
/// Called on the path of every request, from many threads at a time: it should neither block nor
/// allocate. It is not called with fewer than two candidates. [`Candidates::next_turn`] is often
/// enough state per cluster; a policy that keeps more should use atomics.
///
/// # Examples
///
/// A policy that sends reads to any destination, and writes to those with the metadata
/// `Role: primary`:
///
/// ```
/// use proxy_model::RequestHead;
/// use proxy_runtime::balance::{Candidates, LoadBalancer};
///
/// struct PrimaryWrites;
///
/// impl LoadBalancer for PrimaryWrites {
///     fn pick(&self, candidates: &Candidates<'_>, head: &dyn RequestHead) -> Option<usize> {
///         if matches!(head.method(), "GET" | "HEAD") {
///             return Some(candidates.draw());
///         }
///         (0..candidates.len()).find(|&i| {
///             let role = candidates.metadata(i).and_then(|metadata| metadata.get("Role"));
///             role.is_some_and(|role| role == "primary")
///         })
///     }
/// }
/// ```
///
/// A policy that narrows the choice and leaves the rest to a built-in one, with
/// [`Candidates::pick_among`]: clients of the network 10.0.0.0/8 get the destinations with the metadata
/// `Internal`, others get the rest.
///
/// ```
/// use std::net::IpAddr;
///
/// use proxy_model::RequestHead;
/// use proxy_runtime::balance::{Candidates, LoadBalancer, PowerOfTwoChoices};
///
/// struct ByClient;
///
/// impl LoadBalancer for ByClient {
///     fn pick(&self, candidates: &Candidates<'_>, head: &dyn RequestHead) -> Option<usize> {
///         let client = head.client_address();
///         let is_internal = matches!(client, Some(IpAddr::V4(address)) if address.octets()[0] == 10);
///         let keep = |&i: &usize| {
///             let metadata = candidates.metadata(i);
///             metadata.is_some_and(|metadata| metadata.contains_key("Internal")) == is_internal
///         };
///         candidates.pick_among(keep, &PowerOfTwoChoices, head)
///     }
///
///     fn is_always_asked(&self) -> bool {
///         true
///     }
/// }
/// ```
///
/// A client whose [affinity](crate::affinity) key names an available destination stays there, and the policy is not
/// called.
///
/// [`BalancerHarness`](crate::harness::BalancerHarness) tests a policy without a network.
pub trait LoadBalancer: Send + Sync {
    /// Returns the position of the chosen candidate, below [`Candidates::len`].
    ///
    /// `None` or a position out of range rejects the request with 503, as if no destination were
    /// available.
    fn pick(&self, candidates: &Candidates<'_>, head: &dyn RequestHead) -> Option<usize>;

    /// Returns true if the policy is called for a single candidate, too, since it may reject it. Default: false.
    fn is_always_asked(&self) -> bool {
        false
    }
}
