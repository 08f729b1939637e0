#![doc = include_str!("../README.md")]
//!
//! # Layers
//!
//! For those who work on the crate: a module names only modules of lower layers, tests aside. A test of the workspace,
//! `module_direction`, holds it.
//!
//! 1. `connection`, `contain`, `spare`, `support`: what knows nothing of requests
//! 2. `http1`, `stream`: what knows nothing of a proxy
//! 3. `error`: what goes wrong with requests
//! 4. `observe`: counters
//! 5. `head`: heads in `http` types
//! 6. `health`
//! 7. `balance`
//! 8. `upstream`: connections to destinations
//! 9. `filter`, `layer`: code of the program around routes
//! 10. `transform`
//! 11. `extensions`
//! 12. `state`
//! 13. `exchange`: what is the same of each exchange with a destination
//! 14. `proxy`
//! 15. `status`
//! 16. `forward`: the typed lane
//! 17. `explain`
//! 18. `server`: listeners and connections of clients
//! 19. `engine`: the raw lane
//! 20. `prometheus`, `admin`

#[cfg(feature = "admin")]
pub mod admin;
pub mod balance;
mod connection;
mod contain;
#[cfg(feature = "server")]
mod engine;
mod error;
mod exchange;
pub mod explain;
mod extensions;
pub mod filter;
#[cfg(test)]
mod fixtures;
pub mod forward;
mod head;
pub mod health;
pub mod http1;
pub mod layer;
pub mod observe;
#[cfg(feature = "metrics")]
mod prometheus;
mod proxy;
#[cfg(feature = "server")]
pub mod server;
mod spare;
mod state;
pub mod status;
mod stream;
mod support;
mod transform;
pub mod upstream;

pub use http;
pub use proxy_model;

pub use self::connection::ConnectionInfo;
pub use self::error::{ForwardError, ForwardErrorKind, Side};
pub use self::forward::ProxyBody;
#[cfg(feature = "metrics")]
pub use self::prometheus::ProxyCollector;
pub use self::proxy::{Driver, Proxy, ProxyBuilder, ProxyService};
pub use self::support::unsupported;

/// An error of whatever kind.
type BoxError = Box<dyn std::error::Error + Send + Sync>;
