//! The server over real sockets.

#![cfg(feature = "server")]
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod affinity;
mod again;
mod agent_limits;
mod agents;
mod announced;
#[cfg(all(feature = "admin", feature = "http2"))]
mod both_versions;
mod browser;
mod bytes;
#[cfg(all(feature = "admin", feature = "http2", feature = "tls"))]
mod causes;
#[cfg(all(feature = "http2", feature = "tls"))]
mod client_certificates;
mod clients;
mod connectors;
mod crowds;
mod destinations;
mod drain;
mod error_bodies;
mod explained;
mod faults;
mod filtered;
mod grpc;
#[cfg(all(feature = "http2", feature = "tls"))]
mod h2spec;
#[cfg(all(feature = "http2", feature = "tls"))]
mod halves;
mod haproxy;
mod held_tunnels;
mod hostile_bytes;
#[cfg(feature = "http2")]
mod hostile_streams;
mod hostile_waits;
mod idle;
mod limits;
mod listen;
mod loops;
mod malformed;
#[cfg(all(feature = "admin", feature = "http2", feature = "tls"))]
mod memory;
mod names;
mod own_transform_waits;
mod own_transforms;
mod policies;
mod proxy;
#[cfg(feature = "http2")]
mod rapid_resets;
mod rejections;
#[cfg(feature = "admin")]
mod replies;
mod senders;
mod shared_pool;
#[cfg(feature = "admin")]
mod stops;
#[cfg(feature = "http2")]
mod streams;
mod support;
#[cfg(feature = "tls")]
mod times;
#[cfg(feature = "tls")]
mod tls;
#[cfg(feature = "tls")]
mod tls_failures;
mod traces;
mod waits;
mod ways;
#[cfg(feature = "http2")]
mod ways_http2;
mod websocket;
