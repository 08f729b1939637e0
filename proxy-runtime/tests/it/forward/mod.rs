//! The forwarder over real sockets: clients, the proxy behind a server, and well-behaved and faulty
//! origins.
#![cfg(feature = "http2")]
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod basics;
mod cancel;
mod direct;
mod expect;
mod extend;
mod faults;
mod filters;
mod front;
mod headers;
mod layers;
mod limits;
mod own_tls;
mod partitions;
mod pool;
mod protocols;
mod retry;
mod runtimes;
mod sharing;
mod streaming;
mod timeouts;
mod tls;
mod trailers;
mod upgrade;
mod web_proxy;
mod weights;
