#![doc = include_str!("../README.md")]
//!
//! # Layers
//!
//! For contributors: a module names only modules of lower layers, except in tests. A test of the workspace,
//! `module_direction`, checks this.
//!
//! 1. `connection`, `contain`, `retry`, `local_pool`, `strict_path`, `support`: parts that do not depend on requests
//! 2. `http1`, `pooled_future`, `stream`: parts that do not depend on a proxy
//! 3. `error`: errors of requests
//! 4. `observe`: counters
//! 5. `head`: heads in `http` types
//! 6. `health`: the health of destinations, and policies to evaluate it
//! 7. `live`: state that outlives a configuration
//! 8. `affinity`, `balance`, `filter`, `trace`, `transform`
//! 9. `progress`: the progress of an exchange
//! 10. `upstream`: connections to destinations
//! 11. `cluster`: the destinations of one cluster, and the pick of one
//! 12. `exchange`: rules that all exchanges with destinations share
//! 13. `response`: a response's body, and the recorder that it closes
//! 14. `layer`: tower layers around routes
//! 15. `policy`: policies by name
//! 16. `extensions`: filters, layers and policies of routes
//! 17. `state`: the compiled configuration with its live state
//! 18. `proxy`: the configuration that serves, and the handles of it
//! 19. `status`, `probing`
//! 20. `forward`: the exchange, and the tower service
//! 21. `build`: the builder of a proxy, and the driver that keeps it up to date
//! 22. `direct`: parts of the proxy on their own
//! 23. `server`: listeners, and connections of clients as the exchange sees them
//! 24. `explain`, `harness`
//! 25. `prometheus`, `admin`

#[cfg(feature = "admin")]
pub mod admin;
pub mod affinity;
pub mod balance;
mod build;
mod cluster;
mod connection;
mod contain;
pub mod direct;
mod error;
mod exchange;
pub mod explain;
mod extensions;
pub mod filter;
#[cfg(test)]
mod fixtures;
pub mod forward;
#[cfg(any(test, feature = "testing"))]
pub mod harness;
mod head;
pub mod health;
#[cfg(feature = "testing")]
#[doc(hidden)]
pub mod http1;
#[cfg(not(feature = "testing"))]
#[allow(
    dead_code,
    unreachable_pub,
    unused_imports,
    reason = "a part of it is reached by fuzz targets and benchmarks alone, with the feature `testing`"
)]
mod http1;
pub mod layer;
mod live;
mod local_pool;
mod observe;
pub mod policy;
mod pooled_future;
mod probing;
mod progress;
#[cfg(feature = "metrics")]
mod prometheus;
mod proxy;
mod response;
mod retry;
#[cfg(feature = "server")]
pub mod server;
mod state;
pub mod status;
mod stream;
mod strict_path;
mod support;
pub mod trace;
mod transform;
pub mod upstream;

pub use http;
pub use proxy_model;

pub use self::build::{Driver, ProxyBuilder};
pub use self::connection::{
    ClientCertificate, ClientField, ConnectionInfo, Network, NetworkError, TrustedProxies,
};
pub use self::error::{Cause, ForwardError, ForwardErrorKind, Side};
pub use self::head::ErrorPages;
#[cfg(feature = "metrics")]
pub use self::prometheus::ProxyCollector;
pub use self::proxy::{ClusterChange, ClusterChanges, Proxy, ProxyService};
pub use self::response::ProxyBody;
pub use self::support::unsupported;

/// An error of whatever kind.
type BoxError = Box<dyn std::error::Error + Send + Sync>;
