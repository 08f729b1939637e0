//! Which of a cluster's available destinations a request goes to.
//!
//! The policies of YARP are here by their names, each with weights: [`PowerOfTwoChoices`] (what a cluster uses that
//! names none), [`RoundRobin`], [`LeastRequests`], [`Random`](RandomChoice) and [`FirstAlphabetical`]. A program brings
//! its own by implementing [`LoadBalancer`] and registering it with
//! [`ProxyBuilder::balancer`](crate::build::ProxyBuilder::balancer).
//!
//! Requests in flight are counted per proxy, over all of its services, from the pick of the destination to the end of the
//! response. At a busy destination (from 100 requests a second on) each worker of a
//! [`Server`](crate::server) counts its own: `PowerOfTwoChoices` compares those, which costs no traffic between cores, and
//! `LeastRequests` the sums. Turns are taken by all workers from one row, and limits of connections hold
//! for all workers together. With one candidate no policy is asked, and no turn is taken.
//!
//! If no connection can be opened to the destination that was picked, the policy is asked again, once, among the others: they are
//! those that would be available if the failed one were unhealthy, so also the next tier, or another zone.
//!
//! # Differences from YARP
//!
//! * A destination that cannot be reached is passed over; in YARP, its requests fail.
//! * Destinations have weights: they are drawn, take turns, and bear load in proportion.
//! * Two choices compare what the worker knows itself of busy destinations; in YARP, what all threads know.
//! * Turns go in the order of the configuration; in YARP, in the order of a hash table.

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
/// It is called on the path of every request, from many threads at a time: it should neither block nor allocate. It is
/// not called when there is no choice, that is, with fewer than two candidates. What it must remember per cluster can
/// mostly be had from [`Candidates::next_turn`]; a policy that keeps more should keep it in atomics.
///
/// # Examples
///
/// A policy that sends what reads to any destination, and what writes to those whose metadata says `Role: primary`:
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
/// [`Trial`] tries a policy without a network.
pub trait LoadBalancer: Send + Sync {
    /// The position of the candidate that the request goes to, from 0 to below [`Candidates::len`].
    ///
    /// `None`, or a position past the end, refuses the request: it is answered with 503, as if no destination were
    /// available.
    fn pick(&self, candidates: &Candidates<'_>, head: &dyn RequestHead) -> Option<usize>;
}
