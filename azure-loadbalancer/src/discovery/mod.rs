//! Between load balancers and discovery: a discovered cluster becomes a pool, and a load balancer becomes
//! clusters.
//!
//! - [`ClusterNodes`] makes nodes of the destinations of one cluster of a live configuration. A proxy that is
//!   found by a tag in Serf or Consul so becomes the pool of a load balancer.
//! - [`LoadBalancerDiscoverer`] makes services of the rules of a load balancer, so that a proxy reaches the
//!   members of its pools itself.

mod discoverer;
mod nodes;

pub use self::discoverer::LoadBalancerDiscoverer;
pub use self::nodes::ClusterNodes;
