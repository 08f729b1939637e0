#![doc = include_str!("../README.md")]

#[cfg(feature = "reqwest")]
mod classify;
#[cfg(feature = "reqwest")]
mod gzip;
#[cfg(feature = "reqwest")]
mod reqwest_transport;
#[cfg(test)]
#[cfg(feature = "reqwest")]
mod tests;
#[cfg(feature = "tls")]
pub mod tls;
mod transport;

#[cfg(feature = "reqwest")]
pub use self::reqwest_transport::{ReqwestTransport, SetupError, TransportOptions};
pub use self::transport::{Transport, TransportError, TransportErrorKind};
