#![doc = include_str!("../README.md")]

pub mod client;
mod discoverer;
pub mod options;
pub mod registration;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
pub mod traefik;
pub mod watch;

pub use self::discoverer::ConsulDiscoverer;
