//! The server's clients as the [exchange](crate::forward::exchange) sees them: connections of HTTP/1.1, whose requests
//! are forwarded as bytes, and streams of HTTP/2, whose requests are forwarded as frames.
//!
//! An HTTP/1.1 request without filters over an idle connection needs no `HeaderMap`, task, timer or allocation: its
//! head is parsed in place and serialised once, and its body is forwarded unchanged while its framing is tracked. It
//! costs two reads and two writes. On HTTP/2, `h2` parses request heads into maps, and response heads become maps.
//!
//! # What leaves this way
//!
//! Nothing was read or written before. These requests are served over `http` types, as those of any tower service:
//!
//! - requests that validation rejects, and in HTTP/1.1 paths with dot segments, which must be
//!   normalised;
//! - HTTP/1.0, `Upgrade`, `CONNECT` and `Expect`;
//! - routes with layers;
//! - all that [leaves the byte path](crate::forward::exchange#what-leaves-the-byte-path) besides.

mod client_head;
mod current;
mod http1;
#[cfg(feature = "http2")]
mod http2;
mod outgoing;
#[cfg(test)]
mod tests;

pub(crate) use self::current::Engine;
pub(crate) use self::http1::Http1Downstream;
#[cfg(feature = "http2")]
pub(crate) use self::http2::Http2Downstream;
#[cfg(test)]
pub(crate) use self::outgoing::PreparedHead;
pub(crate) use crate::forward::exchange::Forwarded;
