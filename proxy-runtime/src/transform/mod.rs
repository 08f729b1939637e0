//! Applies a route's changes to headers.
//!
//! What the changes are is compiled by [`proxy_model::transform`], which also rewrites path, query and method. What is
//! here needs to know the connection and the route's values.

mod forwarded;
mod head_plan;
mod loop_guard;
mod request;
mod response;
mod target;
#[cfg(test)]
mod tests;

pub(crate) use self::forwarded::{Origin, Parts};
pub(crate) use self::head_plan::{Changed, HeadPlan, HostRule, known};
#[cfg(feature = "server")]
pub(crate) use self::head_plan::{RequestOperation, with_slice};
pub(crate) use self::loop_guard::{LoopGuard, guards};
pub(crate) use self::request::{NoValue, is_imitation, route_value};
pub(crate) use self::request::{Outgoing, append, apply_to_request, retain};
pub(crate) use self::response::{apply_to_own_response, apply_to_response, apply_to_trailers};
pub(crate) use self::target::{Invalid, elsewhere};
