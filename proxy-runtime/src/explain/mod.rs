//! What would happen to a request, and why: without a network, and without any effect.
//!
//! [`explain`] answers for a configuration alone; [`Proxy::explain`](crate::Proxy::explain) also knows the health of
//! destinations. Both follow the same code as requests do. What the server rejects or brings into one form before that is the
//! first step of a request that a person writes (`request_from_text`, with the feature `server`), by the server's own code.

mod considered;
#[cfg(feature = "server")]
mod listeners;
mod partition;
#[cfg(feature = "server")]
mod request;
mod secrets;

use std::collections::BTreeMap;

use discovery_core::text::with_causes;
use http::header::HOST;
use http::request::Parts;
use http::{HeaderName, HeaderValue, Request, StatusCode};
use proxy_model::compiled::{Cluster, ClusterIndex, Destination, Route, RouteTarget};
use proxy_model::matching::Lookup;
use proxy_model::{ClusterId, DestinationId, RequestHead, RouteId, Snapshot};
use serde::{Serialize, Serializer};

pub use self::considered::Considered;
use self::considered::considered;
#[cfg(feature = "server")]
pub use self::listeners::Listeners;
pub use self::partition::ExplainedPartition;
use self::partition::explained_partition;
#[cfg(feature = "server")]
pub use self::request::{Asked, request_from_text};
use crate::connection::ConnectionInfo;
use crate::error::ForwardError;
use crate::exchange::body_limit;
use crate::forward::{BodyKind, OutgoingHead, check_head, check_path};
use crate::head::HttpHead;
use crate::health::Health;
use crate::live::{Assessment, assess};
use crate::proxy::Proxy;
use crate::state::{Generation, Nowhere, RouteState};
use crate::support::refusal;
use crate::transform::LoopGuard;

#[cfg(test)]
mod tests;

impl Proxy {
    /// What would happen to a request at this moment. Nothing is sent, no turn is taken.
    pub fn explain(&self, request: &Parts, connection: ConnectionInfo) -> Explanation {
        let generation = self.shared().load();
        let limit = self.shared().max_request_body();
        explain_live(&generation, limit, request, connection)
    }
}

/// What would happen to a request.
///
/// Serialised, every field is there; what does not apply is `null` or empty.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Explanation {
    /// In one word.
    pub outcome: Verdict,
    /// What the proxy would answer by itself; `None`: the answer is the destination's.
    #[serde(serialize_with = "as_number")]
    pub status: Option<StatusCode>,
    /// For [`Verdict::MethodNotAllowed`], the methods that would do.
    pub allow: Vec<String>,
    /// The route that takes the request.
    pub route: Option<RouteId>,
    /// The values of the parameters in its path.
    pub route_values: BTreeMap<String, String>,
    /// Why the route refuses all requests, if it does.
    pub refused: Option<String>,
    /// Why the request is rejected as it is, if it is.
    pub rejected: Option<String>,
    /// The cluster that serves it; of several that share the route, the one with the largest share.
    pub cluster: Option<ClusterId>,
    /// All clusters that share the route, if there are several: id and share from 0 to 1.
    pub weighted_clusters: Vec<(ClusterId, f64)>,
    /// The key that decides between the route's clusters, and the partition that it belongs to, if the route has such.
    pub partition: Option<ExplainedPartition>,
    /// How the cluster's destinations are picked.
    pub policy: Option<String>,
    /// Whether unhealthy destinations are used since there are no others.
    pub panic: bool,
    /// The cluster's destinations in the order of the configuration.
    pub destinations: Vec<ExplainedDestination>,
    /// The request as it would be sent to the first eligible destination by id.
    pub forwarded: Option<ForwardedRequest>,
    /// The other routes and why they do not take the request, the nearest misses first: at most 200.
    pub considered: Vec<Considered>,
    /// How many more routes there are.
    pub considered_omitted: usize,
}

/// What would happen, in one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Verdict {
    /// It would be forwarded.
    Matched,
    /// No route takes it.
    NotFound,
    /// Routes would take it if it had another method.
    MethodNotAllowed,
    /// The route names no cluster that exists.
    NoCluster,
    /// The request belongs to none of the route's partitions.
    NoPartition,
    /// The cluster has no destination that may be picked.
    NoDestination,
    /// The route asks for a protection that the proxy cannot give.
    Refused,
    /// The request has come back to the proxy that forwarded it.
    LoopDetected,
    /// The request cannot be forwarded as it is: the server rejects it before a route is asked, or, if there is a route, its path has
    /// several readings, it has too large a body, asks in vain for another protocol, or the route's changes make no valid request of it.
    Rejected,
}

/// A destination that may or may not be picked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ExplainedDestination {
    /// Its id.
    pub id: DestinationId,
    /// Its URL as configured.
    pub address: String,
    /// Whether it may be picked.
    pub eligible: bool,
    /// Why not.
    pub why: Option<String>,
}

/// A request as it would be sent to a destination.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ForwardedRequest {
    /// The method.
    pub method: String,
    /// The whole URL.
    pub uri: String,
    /// The headers, `Host` first, as they are sent over HTTP/1.1; names are spelled in the usual way. Bytes that are not
    /// UTF-8 are shown as `U+FFFD`.
    pub headers: Vec<(String, String)>,
}

/// The settings of a proxy that is not there.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct ProxySettings {
    /// Where the proxy is. Default: nowhere.
    pub zone: Option<String>,
    /// Bytes of content that a request may have where its route does not say. Default: any number.
    pub max_request_body: Option<u64>,
}

/// What would happen to a request in a proxy with this configuration and these settings, of whose destinations nothing is known.
///
/// The request is one that the server has let in: `request_from_text`, of the feature `server`, asks that first.
pub fn explain(
    snapshot: &Snapshot,
    settings: &ProxySettings,
    request: &Parts,
    connection: ConnectionInfo,
) -> Explanation {
    let zone = settings.zone.as_deref();
    let unknown = |cluster: &Cluster, _| assess(cluster, zone, &[], |_| Health::Unknown);
    let place = Place {
        snapshot,
        live: None,
        max_request_body: settings.max_request_body,
    };
    explain_with(&place, unknown, request, connection)
}

/// The request that `destination` would get over HTTP/1.1 if `route` took `request`: headers filtered, and the route's
/// changes made. Whether the route takes it is not asked, and that it has no body is assumed.
///
/// Every request goes the same way. This is to see what transforms do, without a network: for tests and benchmarks.
///
/// # Errors
///
/// The changes make no valid request.
#[cfg(feature = "testing")]
#[doc(hidden)]
pub fn outgoing_request(
    route: &Route,
    destination: &Destination,
    request: &Parts,
    connection: ConnectionInfo,
) -> Result<Request<()>, ForwardError> {
    let head = HttpHead::with_connection(request, connection);
    outgoing(&head, route, destination, None)
}

fn outgoing(
    head: &HttpHead<'_>,
    route: &Route,
    destination: &Destination,
    guard: Option<&LoopGuard>,
) -> Result<Request<()>, ForwardError> {
    let outgoing = OutgoingHead::new(head, route, destination)?.guarded(guard);
    outgoing.into_request((), BodyKind::Empty, false)
}

/// What would happen to a request at this moment.
pub(crate) fn explain_live(
    generation: &Generation,
    max_request_body: Option<u64>,
    request: &Parts,
    connection: ConnectionInfo,
) -> Explanation {
    let live = |cluster: &Cluster, index| generation.cluster(index).assess(cluster);
    let place = Place {
        snapshot: generation.snapshot(),
        live: Some(generation),
        max_request_body,
    };
    explain_with(&place, live, request, connection)
}

/// Where a request would come.
struct Place<'a> {
    snapshot: &'a Snapshot,
    live: Option<&'a Generation>,
    max_request_body: Option<u64>,
}

fn explain_with(
    place: &Place<'_>,
    assess: impl Fn(&Cluster, ClusterIndex) -> Assessment,
    request: &Parts,
    connection: ConnectionInfo,
) -> Explanation {
    let Place { snapshot, live, .. } = *place;
    let head = HttpHead::with_connection(request, connection);
    let mut explanation = Explanation::new();
    let found = snapshot.table().find(snapshot.routes(), &head);
    let matched = match &found {
        Lookup::Matched(index) => Some(*index),
        Lookup::MethodNotAllowed(_) | Lookup::NotFound => None,
    };
    considered(snapshot, matched, &head, &mut explanation);
    let index = match found {
        Lookup::Matched(index) => index,
        Lookup::MethodNotAllowed(methods) => {
            explanation.allow = methods.iter().map(str::to_owned).collect();
            return explanation.ending(Verdict::MethodNotAllowed, StatusCode::METHOD_NOT_ALLOWED);
        }
        Lookup::NotFound => return explanation.ending(Verdict::NotFound, StatusCode::NOT_FOUND),
    };

    let route = snapshot.route_at(index);
    explanation.route = Some(route.id().clone());
    let values = route
        .matcher()
        .path()
        .capture(request.uri.path())
        .unwrap_or_default();
    explanation.route_values = values
        .iter()
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect();
    if let Some(refusal) = refusal(route) {
        explanation.refused = Some(refusal.to_string());
        return explanation.ending(Verdict::Refused, StatusCode::INTERNAL_SERVER_ERROR);
    }
    if let Err(error) = check_path(route, head.path()) {
        return explanation.rejecting(&error);
    }
    let state = live.map(|generation| generation.route(index));
    if state.is_some_and(|state| state.is_loop(&head, head.classes())) {
        return explanation.ending(Verdict::LoopDetected, StatusCode::LOOP_DETECTED);
    }
    let index = match leads_to(route, &head, &mut explanation) {
        Ok(index) => index,
        Err(Nowhere::NoCluster) => {
            return explanation.ending(Verdict::NoCluster, StatusCode::SERVICE_UNAVAILABLE);
        }
        Err(Nowhere::NoPartition(_)) => {
            return explanation.ending(Verdict::NoPartition, StatusCode::BAD_REQUEST);
        }
    };

    let cluster = snapshot.cluster_at(index);
    explanation.cluster = Some(cluster.id().clone());
    explanation.policy = Some(cluster.balancing().name().to_owned());
    let assessment = assess(cluster, index);
    explanation.panic = assessment.panic;
    explanation.destinations = cluster
        .destinations()
        .iter()
        .zip(&assessment.verdicts)
        .map(|(destination, why)| ExplainedDestination {
            id: destination.id().clone(),
            address: destination.config().address.clone(),
            eligible: why.is_none(),
            why: why.as_ref().map(ToString::to_string),
        })
        .collect();
    let limit = body_limit(place.max_request_body, route);
    if let Err(error) = check_head(request, &head, cluster.upstream(), limit) {
        return explanation.rejecting(&error);
    }
    let eligible = assessment.eligible().map(|i| &cluster.destinations()[i]);
    let Some(destination) = eligible.min_by_key(|destination| destination.id()) else {
        return explanation.ending(Verdict::NoDestination, StatusCode::SERVICE_UNAVAILABLE);
    };
    let guard = state.and_then(RouteState::loop_guard);
    match outgoing(&head, route, destination, guard) {
        Ok(request) => {
            explanation.forwarded = Some(forwarded(&request, destination));
            explanation
        }
        Err(error) => explanation.rejecting(&error),
    }
}

/// The cluster of a route for a request; of several by weight, the one with the largest share that exists.
fn leads_to(
    route: &Route,
    head: &HttpHead<'_>,
    explanation: &mut Explanation,
) -> Result<ClusterIndex, Nowhere> {
    let cluster = match route.target() {
        RouteTarget::None => None,
        RouteTarget::Missing(id) => {
            explanation.cluster = Some(id.clone());
            None
        }
        RouteTarget::Cluster(index) => Some(*index),
        RouteTarget::Partitioned(partitions) => {
            explanation.partition = Some(explained_partition(partitions, head));
            let target = partitions.find(head).map_err(Nowhere::NoPartition)?;
            explanation.cluster = Some(target.id().clone());
            target.cluster()
        }
        RouteTarget::Weighted(targets) => {
            let total: u64 = targets.iter().map(|t| u64::from(t.weight())).sum();
            explanation.weighted_clusters = targets
                .iter()
                .map(|t| (t.id().clone(), f64::from(t.weight()) / total as f64))
                .collect();
            // Of equal shares the first, so the order is turned around for `max_by_key`, which takes the last.
            let existing = targets.iter().rev().filter(|t| t.weight() > 0);
            existing
                .filter_map(|t| Some((t.weight(), t.cluster()?)))
                .max_by_key(|(weight, _)| *weight)
                .map(|(_, cluster)| cluster)
        }
    };
    cluster.ok_or(Nowhere::NoCluster)
}

/// The request as `destination` would get it over HTTP/1.1.
fn forwarded(request: &Request<()>, destination: &Destination) -> ForwardedRequest {
    let address = destination.address();
    let authority = String::from_utf8_lossy(address.authority().as_bytes());
    let (host, others): (Vec<_>, Vec<_>) = request
        .headers()
        .iter()
        .partition(|(name, _)| **name == HOST);
    let shown = |(name, value): (&HeaderName, &HeaderValue)| {
        (
            spelled(name),
            String::from_utf8_lossy(value.as_bytes()).into_owned(),
        )
    };
    ForwardedRequest {
        method: request.method().to_string(),
        uri: format!(
            "{}://{authority}{}",
            address.scheme().as_str(),
            request.uri()
        ),
        headers: host.into_iter().chain(others).map(shown).collect(),
    }
}

/// The name of a header as people know it: `X-Forwarded-For`.
fn spelled(name: &HeaderName) -> String {
    let mut is_first = true;
    let capitals = name.as_str().chars().map(|c| {
        let spelled = if is_first { c.to_ascii_uppercase() } else { c };
        is_first = c == '-';
        spelled
    });
    capitals.collect()
}

impl Explanation {
    fn new() -> Self {
        Self {
            outcome: Verdict::Matched,
            status: None,
            allow: Vec::new(),
            route: None,
            route_values: BTreeMap::new(),
            refused: None,
            rejected: None,
            cluster: None,
            weighted_clusters: Vec::new(),
            partition: None,
            policy: None,
            panic: false,
            destinations: Vec::new(),
            forwarded: None,
            considered: Vec::new(),
            considered_omitted: 0,
        }
    }

    fn rejecting(mut self, error: &ForwardError) -> Self {
        self.rejected = Some(with_causes(error));
        self.ending(Verdict::Rejected, error.status())
    }

    fn ending(mut self, outcome: Verdict, status: StatusCode) -> Self {
        self.outcome = outcome;
        self.status = Some(status);
        self
    }
}

fn as_number<S: Serializer>(status: &Option<StatusCode>, serializer: S) -> Result<S::Ok, S::Error> {
    match status {
        Some(status) => serializer.serialize_some(&status.as_u16()),
        None => serializer.serialize_none(),
    }
}
