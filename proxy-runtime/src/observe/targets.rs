//! The targets of the proxy's `tracing` events. They are a stable interface: filters may rely on
//! them.
//!
//! | target | events |
//! |---|---|
//! | `proxy::request` | requests and their errors (`debug`); panics of filters and policies (`error`) |
//! | `proxy::upstream` | destinations that fail (`warn`) or work again (`info`); failed connections (`debug`) |
//! | `proxy::config` | new generations of the configuration (`info`), rejected ones (`warn`) |
//! | `proxy::health` | destinations that become unhealthy (`warn`) or recover (`info`) |
//! | `proxy::server` | listeners, connections, drain |
//! | `proxy::tls` | certificates and handshakes |
//! | `proxy::access` | errors of the access log |
//!
//! Events of single requests are at `debug`, since clients decide how many there are. Health and
//! failure of destinations have one event per change.

/// Requests.
pub(crate) const REQUEST: &str = "proxy::request";
/// Connections to destinations.
pub(crate) const UPSTREAM: &str = "proxy::upstream";
/// Generations of the configuration.
pub(crate) const CONFIG: &str = "proxy::config";
/// Health of destinations.
pub(crate) const HEALTH: &str = "proxy::health";
/// Listeners and the connections of clients.
pub(crate) const SERVER: &str = "proxy::server";
/// Certificates and handshakes.
pub(crate) const TLS: &str = "proxy::tls";
/// Errors of the access log.
pub(crate) const ACCESS: &str = "proxy::access";
