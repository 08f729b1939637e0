//! Changes to requests and responses, compiled from the maps that a configuration writes.
//!
//! A route's `Transforms` are a list of small maps, as in YARP. [`Transforms::compile`] turns them into settings
//! (which headers are copied, whose `Host` is sent) and into lists of changes to apply in order, with every name and
//! value parsed. Changes to path, query and method are pure functions and live here ([`Transforms::rewrite`],
//! [`path_and_query`]); the forwarder applies changes to headers, since only it knows the connection.
//!
//! Without any configuration the `X-Forwarded-*` headers are set, `Forwarded` is removed and the client's `Host` is
//! not sent on.

mod compile;
mod entry;
mod forwarded;
mod own;
mod path;
mod query;
mod request;
mod response;
mod target;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use http::HeaderName;

#[cfg(feature = "schema")]
pub(crate) use self::entry::transform_keys;
pub use self::forwarded::{
    Forwarded, ForwardedAction, NodeFormat, NodeName, NodePort, XForwarded, XForwardedPart,
};
pub(crate) use self::own::OwnTransforms;
pub use self::path::PathText;
pub(crate) use self::path::encoded_path;
pub use self::query::{QueryChange, QueryValue};
pub use self::request::RequestTransform;
pub use self::response::{HeaderChange, ResponseCondition, ResponseTransform};
pub use self::target::{RequestTarget, TargetTransform, path_and_query};

/// The choice between replacing existing values and adding to them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SetOrAppend {
    /// The value replaces all values of that name.
    Set,
    /// The value is added after those that are there.
    Append,
}

/// The incoming headers that are sent on. Hop-by-hop headers are left out of `All`, not of `Only`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum HeaderCopy {
    /// All headers.
    #[default]
    All,
    /// No headers.
    None,
    /// The headers of these names. May name hop-by-hop headers.
    Only(Box<[HeaderName]>),
}

impl HeaderCopy {
    /// Returns true if headers called `name` are sent on.
    pub fn allows(&self, name: &HeaderName) -> bool {
        match self {
            Self::All => true,
            Self::None => false,
            Self::Only(names) => names.contains(name),
        }
    }
}

/// All changes of a route. Cheap to clone; routes of a configuration that write the same changes share them.
#[derive(Clone, Debug)]
pub struct Transforms(Arc<Parts>);

/// The content of [`Transforms`].
#[derive(Debug)]
struct Parts {
    target: Box<[TargetTransform]>,
    original_host: bool,
    request_copy: HeaderCopy,
    request: Box<[RequestTransform]>,
    response_copy: HeaderCopy,
    response: Box<[ResponseTransform]>,
    trailers_copy: HeaderCopy,
    trailers: Box<[ResponseTransform]>,
    own: Box<[usize]>,
}

impl Transforms {
    /// A number that is equal for clones and differs for others that exist at the same time: a key for values that are
    /// derived from transforms.
    pub fn identity(&self) -> usize {
        Arc::as_ptr(&self.0).addr()
    }

    /// The positions in the route's `Transforms` of those that the program has registered.
    pub fn own(&self) -> &[usize] {
        &self.0.own
    }

    /// Changes to path, query and method, in order.
    pub fn target(&self) -> &[TargetTransform] {
        &self.0.target
    }

    /// Returns true if any change uses route values, the parts of the path that the route's template
    /// captures. If not, [capturing](crate::matching::PathTemplate::capture) can be skipped.
    pub fn uses_route_values(&self) -> bool {
        let by_target = |change: &TargetTransform| {
            matches!(
                change,
                TargetTransform::PathPattern(_)
                    | TargetTransform::Query(QueryChange::Value {
                        value: QueryValue::RouteValue(_),
                        ..
                    })
            )
        };
        let by_header =
            |change: &RequestTransform| matches!(change, RequestTransform::RouteValue { .. });
        self.0.target.iter().any(by_target) || self.0.request.iter().any(by_header)
    }

    /// Returns true if the client's `Host` is sent on, rather than the destination's. A change to the
    /// header `Host` among [`request`](Self::request) has precedence over both.
    pub fn original_host(&self) -> bool {
        self.0.original_host
    }

    /// The request headers that are sent on.
    pub fn request_copy(&self) -> &HeaderCopy {
        &self.0.request_copy
    }

    /// Changes to request headers, in order.
    pub fn request(&self) -> &[RequestTransform] {
        &self.0.request
    }

    /// The response headers that are sent on.
    pub fn response_copy(&self) -> &HeaderCopy {
        &self.0.response_copy
    }

    /// Changes to response headers, in order. They are made even if no destination responded.
    pub fn response(&self) -> &[ResponseTransform] {
        &self.0.response
    }

    /// The response trailers that are sent on.
    pub fn trailers_copy(&self) -> &HeaderCopy {
        &self.0.trailers_copy
    }

    /// Changes to response trailers, in order.
    pub fn trailers(&self) -> &[ResponseTransform] {
        &self.0.trailers
    }
}
