//! Applies a route's changes to headers.
//!
//! What the changes are is compiled by [`proxy_model::transform`], which also rewrites path, query and method. What is
//! here needs to know the connection and the route's values.

mod forwarded;
mod request;
mod response;
#[cfg(test)]
mod tests;

pub(crate) use self::forwarded::Origin;
pub(crate) use self::request::{Outgoing, append, apply_to_request, is_imitation, retain};
pub(crate) use self::response::{apply_to_own_response, apply_to_response, apply_to_trailers};
