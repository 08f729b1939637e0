//! Applies a route's changes to headers.
//!
//! What the changes are is compiled by [`proxy_model::transform`], which also rewrites path, query and method. What is
//! here needs to know the connection and the route's values.

mod compiled;
mod forwarded;
mod host_rule;
mod loop_guard;
mod operation;
mod request;
mod response;
mod target;
#[cfg(test)]
mod tests;
mod trailers;

pub(crate) use self::compiled::{Changed, CompiledTransforms};
pub(crate) use self::forwarded::{Origin, OriginParts};
pub(crate) use self::host_rule::HOST_LINE;
pub(crate) use self::host_rule::{Host, HostHeaderRule, mark_host};
pub(crate) use self::loop_guard::{LoopGuard, guards};
pub(crate) use self::operation::known;
#[cfg(feature = "server")]
pub(crate) use self::operation::{RequestOperation, with_slice};
pub(crate) use self::request::{NoValue, is_imitation, route_host, route_value};
pub(crate) use self::request::{Outgoing, append, apply_to_request, retain};
pub(crate) use self::response::apply_to_own_response;
pub(crate) use self::target::{Invalid, elsewhere, sent_method};
#[cfg(test)]
pub(crate) use self::tests::apply_to_response;
pub(crate) use self::trailers::TrailerPlan;
