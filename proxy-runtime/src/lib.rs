#![doc = include_str!("../README.md")]

#[cfg(feature = "admin")]
pub mod admin;
pub mod balance;
mod connection;
pub mod explain;
pub mod forward;
pub mod health;
pub mod observe;
mod proxy;
#[cfg(feature = "server")]
pub mod server;
pub mod state;
mod support;
mod transform;
pub mod upstream;

pub use http;
pub use proxy_model;

pub use self::connection::ConnectionInfo;
pub use self::forward::{ForwardError, ForwardErrorKind, ProxyBody, Side};
pub use self::proxy::{Driver, Proxy, ProxyBuilder, ProxyService};
pub use self::support::unsupported;
