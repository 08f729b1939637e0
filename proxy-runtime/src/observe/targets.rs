//! The targets of the proxy's `tracing` events. They are part of the interface: filters may rely on them.
//!
//! | target | tells |
//! |---|---|
//! | `proxy::request` | one event per request, and what went wrong with one, at `debug`, since clients decide how many there are; filters and policies of the program that panic, at `error` |
//! | `proxy::upstream` | destinations to which requests fail (`warn`) or work again (`info`), one event per change; connections that failed (`debug`) |
//! | `proxy::config` | new generations of the configuration (`info`), refused ones (`warn`) |
//! | `proxy::health` | one event per change of a destination's health: `warn` when it falls ill, `info` when it recovers |
//! | `proxy::server` | listeners, connections, drain |
//! | `proxy::tls` | certificates and handshakes |
//! | `proxy::access` | trouble with writing the access log |

/// Requests.
pub const REQUEST: &str = "proxy::request";
/// Connections to destinations.
pub const UPSTREAM: &str = "proxy::upstream";
/// Generations of the configuration.
pub const CONFIG: &str = "proxy::config";
/// Health of destinations.
pub const HEALTH: &str = "proxy::health";
/// Listeners and the connections of clients.
pub const SERVER: &str = "proxy::server";
/// Certificates and handshakes.
pub const TLS: &str = "proxy::tls";
/// Trouble with writing the access log.
pub const ACCESS: &str = "proxy::access";
