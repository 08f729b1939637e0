//! Applies a route's changes to headers.
//!
//! [`proxy_model::transform`] compiles the changes, and also rewrites path, query and method. This module applies
//! those that need the connection and the route's values.

mod compiled;
mod forwarded;
mod host_rule;
mod loop_guard;
mod operation;
mod route_value;
mod target;
#[cfg(test)]
mod tests;
mod trailers;

pub(crate) use self::compiled::{Changed, CompiledTransforms};
pub(crate) use self::forwarded::{Origin, OriginParts, to_ascii};
pub(crate) use self::host_rule::HOST_LINE;
pub(crate) use self::host_rule::{Host, HostHeaderRule, mark_host};
pub(crate) use self::loop_guard::{LoopGuard, guards};
pub(crate) use self::operation::known;
#[cfg(feature = "server")]
pub(crate) use self::operation::{RequestOperation, with_slice};
pub(crate) use self::route_value::{NoValue, route_host, route_value};
pub(crate) use self::target::{Invalid, elsewhere, sent_method};
pub(crate) use self::trailers::TrailerPlan;
