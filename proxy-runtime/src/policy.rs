//! Policies: what stands before a route by the names that its configuration has, such as
//! `RateLimiterPolicy`.
//!
//! The proxy does not know what a policy does. A [`PolicySource`], registered with
//! [`ProxyBuilder::policies`](crate::ProxyBuilder::policies), makes one [filter](crate::filter) or
//! one [layer](crate::layer) of all policies of a route; the crate `proxy-policies` has one for the
//! policies of ASP.NET.
//!
//! A request meets the policies of its route before the route's own layers and filters. A route
//! without policies has no overhead. A route whose `AuthorizationPolicy` no source honours answers
//! 500 to every request.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use http::{Request, Response};
use http_body::Body;
use proxy_model::config::PolicyKind;
use proxy_model::{Problems, Snapshot};
use tower_layer::Layer;
use tower_service::Service;

use crate::BoxError;
use crate::filter::Filter;
use crate::layer::{BoxLayer, ProxyRequestBody, RouteService, boxed};

/// Makes the policies of routes.
pub trait PolicySource: Send + Sync + 'static {
    /// Returns the policies of each route of a configuration, in the order of the routes. State of a
    /// policy that is the same as in the configuration before should be kept.
    ///
    /// # Errors
    ///
    /// Fails if a policy cannot be honoured. The current configuration stays.
    fn of_routes(&self, snapshot: &Snapshot) -> Result<Vec<Option<RoutePolicies>>, Problems>;

    /// Returns the numbers of decisions so far, for metrics. Default: none.
    fn counts(&self) -> Vec<PolicyCount> {
        Vec::new()
    }
}

/// The number of decisions of a policy with one outcome.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyCount {
    /// The kind of the policy.
    pub kind: PolicyKind,
    /// The name of the policy.
    pub name: Arc<str>,
    /// The outcome, in one word: `admitted`.
    pub outcome: &'static str,
    /// The number of decisions.
    pub count: u64,
}

/// All policies of one route.
#[derive(Clone)]
pub struct RoutePolicies(pub(crate) Form);

#[derive(Clone)]
pub(crate) enum Form {
    /// The result for a route without layers.
    Filter(Arc<dyn Filter>),
    Layer(Arc<BoxLayer>),
}

impl RoutePolicies {
    /// Policies that need only the heads of messages, on a route without layers.
    pub fn filter(filter: impl Filter) -> Self {
        Self(Form::Filter(Arc::new(filter)))
    }

    /// Policies that may wait, or hold something until the response has ended.
    pub fn layer<L, B>(layer: L) -> Self
    where
        L: Layer<RouteService> + Send + Sync + 'static,
        L::Service: Service<Request<ProxyRequestBody>, Response = Response<B>>
            + Clone
            + Send
            + Sync
            + 'static,
        <L::Service as Service<Request<ProxyRequestBody>>>::Error: Into<BoxError>,
        <L::Service as Service<Request<ProxyRequestBody>>>::Future: Send,
        B: Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        Self(Form::Layer(boxed(layer)))
    }
}

impl fmt::Debug for RoutePolicies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RoutePolicies").finish_non_exhaustive()
    }
}
