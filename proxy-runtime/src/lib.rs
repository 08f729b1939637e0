#![doc = include_str!("../README.md")]

#[cfg(feature = "admin")]
pub mod admin;
pub mod balance;
mod connection;
mod contain;
#[cfg(feature = "server")]
mod engine;
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
mod strict_path;
mod support;
mod transform;
pub mod upstream;

pub use http;
pub use proxy_model;

pub use self::connection::ConnectionInfo;
pub use self::forward::{ForwardError, ForwardErrorKind, ProxyBody, Side};
pub use self::proxy::{Driver, Proxy, ProxyBuilder, ProxyService};
pub use self::support::unsupported;

/// An error of whatever kind.
type BoxError = Box<dyn std::error::Error + Send + Sync>;
