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
//! 5. `loop_guard`, `health`
//! 6. `balance`
//! 7. `upstream`: connections to destinations
//! 8. `filter`, `layer`: code of the program around routes
//! 9. `transform`
//! 10. `extensions`
//! 11. `state`
//! 12. `exchange`: what is the same of each exchange with a destination
//! 13. `proxy`
//! 14. `status`
//! 15. `forward`: the typed lane
//! 16. `explain`
//! 17. `server`: listeners and connections of clients
//! 18. `engine`: the raw lane
//! 19. `admin`

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
pub mod health;
pub mod http1;
pub mod layer;
mod loop_guard;
pub mod observe;
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
pub use self::proxy::{Driver, Proxy, ProxyBuilder, ProxyService};
pub use self::support::unsupported;

/// An error of whatever kind.
type BoxError = Box<dyn std::error::Error + Send + Sync>;
