//! Connects load balancers and discovery: a discovered cluster becomes a pool, and a load balancer becomes
//! clusters.
//!
//! - [`ClusterNodes`] turns the destinations of one cluster of a live configuration into nodes. A proxy that
//!   is found by a tag in Serf or Consul thus becomes the pool of a load balancer.
//! - [`LoadBalancerDiscoverer`] turns the rules of a load balancer into services, so that a proxy reaches the
//!   members of its pools directly.

mod discoverer;
mod nodes;

pub use self::discoverer::LoadBalancerDiscoverer;
pub use self::nodes::ClusterNodes;
