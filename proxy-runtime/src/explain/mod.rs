//! Explanations: the result of a request with its reasons, without network traffic or side effects.
//!
//! [`explain`] works on a configuration alone; [`Proxy::explain`](crate::Proxy::explain) also knows
//! the health of destinations. Both run the code that serves requests. `request_from_text` (feature
//! `server`) makes a request from text and applies the validation and normalisation of the server,
//! with the server's code.

mod affinity;
mod considered;
mod forwarded;
#[cfg(feature = "server")]
mod listeners;
mod partition;
mod policies;
#[cfg(feature = "server")]
mod request;
mod rules;
#[cfg(feature = "server")]
mod secrets;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use discovery_core::text::with_causes;
use http::header::LOCATION;
use http::request::Parts;
use http::{HeaderMap, StatusCode};
use proxy_model::compiled::{Cluster, ClusterIndex, Route, RouteTarget};
use proxy_model::matching::Lookup;
use proxy_model::{ClusterId, DestinationId, RequestHead, RouteId, Snapshot};
use serde::{Serialize, Serializer};

pub use self::affinity::{ExplainedAffinity, KeyUse};
use self::affinity::{affinity, kept_cluster};
use self::considered::considered;
pub use self::considered::{Considered, Miss, ShadowedRoute, shadowed_routes};
pub use self::forwarded::ForwardedRequest;
use self::forwarded::forwarded;
#[cfg(feature = "server")]
pub use self::listeners::Listeners;
pub use self::partition::ExplainedPartition;
use self::partition::explained_partition;
#[cfg(feature = "server")]
pub use self::request::{ParsedRequest, request_from_text};
use crate::connection::ConnectionInfo;
use crate::error::ForwardError;
use crate::exchange::body_limit;
use crate::forward::{check_head, check_length, check_path, reply, sent_request};
use crate::head::{ErrorBodies, ErrorForm, ErrorPage, ErrorPages, HeaderMutations, HttpHead};
use crate::live::{Assessment, assess};
use crate::policy::{PolicySource, RoutePolicies, described};
use crate::proxy::Proxy;
use crate::state::{Generation, Nowhere};
use crate::support::rejection;
use crate::transform::{CompiledTransforms, LoopGuard, guards};

#[cfg(test)]
mod tests;

impl Proxy {
    /// Explains a request with the current configuration and health. Sends nothing and takes no
    /// turn of a load balancing policy.
    pub fn explain(&self, request: &Parts, connection: ConnectionInfo) -> Explanation {
        let generation = self.shared().load();
        let shared = self.shared();
        let errors = shared.errors(shared.error_form(&request.headers));
        let limit = shared.max_request_body();
        explain_live(&generation, (limit, errors), request, connection)
    }
}

/// The result of a request with its reasons.
///
/// The serialised form has every field; fields that do not apply are `null` or empty.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Explanation {
    /// The result in one word.
    pub outcome: Verdict,
    /// The status of the proxy's own response. `None` if the destination responds.
    #[serde(serialize_with = "as_number")]
    pub status: Option<StatusCode>,
    /// The [error page](crate::ErrorPages) of the proxy's own response, by its name. `None` without one.
    pub error_page: Option<String>,
    /// The accepted methods, for [`Verdict::MethodNotAllowed`].
    pub allow: Vec<String>,
    /// The route that matches the request.
    pub route: Option<RouteId>,
    /// The values of the parameters in the path.
    pub route_values: BTreeMap<String, String>,
    /// The policies of the route, in the order in which the request meets them:
    /// `RateLimiterPolicy api`.
    pub policies: Vec<String>,
    /// Policies that are not asked here, because a service, a password or a count decides. The rest of the
    /// explanation assumes that they let the request pass.
    pub undecided_policies: Vec<String>,
    /// The filters of the route, transforms of the program included, in the order in which the request meets them, by
    /// name or key; `hook` for those of [`route_hook`](crate::ProxyBuilder::route_hook). They are not called here: the
    /// rest of the explanation lacks their changes.
    pub filters: Vec<String>,
    /// The limits and the rule for retries that apply to the request, one sentence each. Those of policies are there
    /// without a cluster, too.
    pub rules: Vec<String>,
    /// The reason why the route rejects all requests, if it does.
    #[serde(rename = "refused")]
    pub route_rejection: Option<String>,
    /// The reason why this request is rejected, if it is.
    pub rejected: Option<String>,
    /// The cluster that serves the request; among weighted clusters, the one that the request's
    /// affinity key names, else the one with the largest share.
    pub cluster: Option<ClusterId>,
    /// All weighted clusters of the route, if there are several: id and share from 0 to 1.
    pub weighted_clusters: Vec<(ClusterId, f64)>,
    /// True if the request's affinity key is of the cluster, whatever the shares are.
    pub keeps_cluster: bool,
    /// The partition key of the request and its partition, if the route has partitions.
    pub partition: Option<ExplainedPartition>,
    /// The session affinity of the request, if the cluster has any.
    pub affinity: Option<ExplainedAffinity>,
    /// The load balancing policy of the cluster.
    pub policy: Option<String>,
    /// True if unhealthy destinations are used because no other ones are left.
    pub panic: bool,
    /// The cluster's destinations in the order of the configuration.
    pub destinations: Vec<ExplainedDestination>,
    /// The request as it would be sent to the destination that its affinity key names, else to the
    /// first eligible destination by id.
    pub forwarded: Option<ForwardedRequest>,
    /// The URL of a redirect.
    pub location: Option<String>,
    /// The other routes with the reason why they do not match, the nearest misses first: at most
    /// 200.
    pub considered: Vec<Considered>,
    /// Number of routes beyond that limit.
    pub considered_omitted: usize,
}

/// The result of a request in one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Verdict {
    /// The request is forwarded.
    Matched,
    /// The route answers itself, with a redirect or a fixed response.
    Answered,
    /// A policy of the route answers in place of a destination.
    AnsweredByPolicy,
    /// No route matches.
    NotFound,
    /// Routes match except for the method.
    MethodNotAllowed,
    /// The cluster of the route does not exist.
    NoCluster,
    /// The request belongs to no partition of the route.
    NoPartition,
    /// No destination of the cluster is available.
    NoDestination,
    /// The route requires a protection that the proxy does not support.
    #[serde(rename = "refused")]
    RouteRejected,
    /// The request has already passed through this proxy.
    LoopDetected,
    /// The request cannot be forwarded. The server rejects it before routing, or the route does: its path is
    /// ambiguous, its body is too large, it requests an unsupported protocol, or the transforms of the route make
    /// no valid request.
    Rejected,
}

/// A destination of the cluster, with its eligibility.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ExplainedDestination {
    /// The id.
    pub id: DestinationId,
    /// The configured URL.
    pub address: String,
    /// True if the destination may be picked.
    pub eligible: bool,
    /// The reason why the destination may not be picked.
    pub why: Option<String>,
}

/// The settings of a proxy that is not running.
#[derive(Clone, Default)]
#[non_exhaustive]
pub struct ProxySettings {
    /// The zone of the proxy. Default: none.
    pub zone: Option<String>,
    /// Maximum size of a request body, in bytes, for routes that set none. Default: unlimited.
    pub max_request_body: Option<u64>,
    /// True if the proxy does not mark requests with `CDN-Loop`. Default: false.
    pub without_loop_guard: bool,
    /// True if a destination whose address is a name becomes one for each address of the name: only
    /// a running proxy knows those that affinity keys name. Default: false.
    pub resolves_destinations: bool,
    /// The policies that the configuration defines. Default: none is asked.
    pub policies: Option<Arc<dyn PolicySource>>,
    /// The pages of errors. Default: none.
    pub error_pages: ErrorPages,
    /// True if errors have the form that clients prefer. Default: false.
    pub negotiate_errors: bool,
}

impl fmt::Debug for ProxySettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProxySettings")
            .field("zone", &self.zone)
            .field("max_request_body", &self.max_request_body)
            .field("without_loop_guard", &self.without_loop_guard)
            .field("resolves_destinations", &self.resolves_destinations)
            .field("policies", &self.policies.is_some())
            .field("error_pages", &self.error_pages)
            .field("negotiate_errors", &self.negotiate_errors)
            .finish()
    }
}

/// Explains a request for a proxy with this configuration and these settings. The health of all
/// destinations is unknown.
///
/// The request must have passed the server: use `request_from_text` (feature `server`) to validate
/// it first.
pub fn explain(
    snapshot: &Snapshot,
    settings: &ProxySettings,
    request: &Parts,
    connection: ConnectionInfo,
) -> Explanation {
    let zone = settings.zone.as_deref();
    let unknown = |cluster: &Cluster, _| assess(cluster, zone, &[], None);
    let policies = settings.policies.as_ref();
    // Policies that cannot be honoured keep the configuration from serving.
    let policies = policies.and_then(|source| source.of_routes(snapshot).ok());
    let guard = (!settings.without_loop_guard).then(LoopGuard::unnumbered);
    let form = match settings.negotiate_errors {
        true => ErrorForm::of_fields(&request.headers),
        false => ErrorForm::default(),
    };
    let pages = Some(Arc::new(settings.error_pages.clone()));
    let place = ExplainContext {
        snapshot,
        live: None,
        policies: policies.as_deref().unwrap_or_default(),
        guard: guard.as_ref(),
        resolves_destinations: settings.resolves_destinations,
        max_request_body: settings.max_request_body,
        errors: ErrorBodies::new(form, settings.negotiate_errors, pages),
    };
    explain_with(&place, unknown, request, connection)
}

/// Returns the request that `destination` would receive over HTTP/1.1 from `route`, with filtered
/// headers and the route's transforms, which are compiled for it. Does not check whether the route
/// matches.
///
/// Uses the code of forwarded requests, to test or measure transforms without a network.
///
/// # Errors
///
/// Fails if the transforms make no valid request.
#[cfg(feature = "testing")]
#[doc(hidden)]
pub fn outgoing_request(
    route: &Route,
    destination: &proxy_model::compiled::Destination,
    request: &Parts,
    connection: ConnectionInfo,
) -> Result<http::Request<()>, ForwardError> {
    let head = HttpHead::with_connection(request, connection);
    sent_request(
        &head,
        route,
        &CompiledTransforms::of(route, None),
        destination,
    )
}

/// Explains a request with the state of a running proxy.
pub(crate) fn explain_live(
    generation: &Generation,
    (max_request_body, errors): (Option<u64>, ErrorBodies),
    request: &Parts,
    connection: ConnectionInfo,
) -> Explanation {
    let live = |cluster: &Cluster, index| generation.cluster(index).assess(cluster);
    let place = ExplainContext {
        snapshot: generation.snapshot(),
        live: Some(generation),
        policies: &[],
        guard: None,
        resolves_destinations: false,
        max_request_body,
        errors,
    };
    explain_with(&place, live, request, connection)
}

/// The configuration and state that a request is explained with.
struct ExplainContext<'a> {
    snapshot: &'a Snapshot,
    live: Option<&'a Generation>,
    /// The policies of the routes of a proxy that is not running.
    policies: &'a [Option<Arc<dyn RoutePolicies>>],
    /// The loop guard of a proxy that is not running.
    guard: Option<&'a LoopGuard>,
    resolves_destinations: bool,
    max_request_body: Option<u64>,
    /// The bodies of errors for the client.
    errors: ErrorBodies,
}

fn explain_with(
    place: &ExplainContext<'_>,
    assess: impl Fn(&Cluster, ClusterIndex) -> Assessment,
    request: &Parts,
    connection: ConnectionInfo,
) -> Explanation {
    let mut explanation = decided(place, assess, request, connection);
    let page = match (explanation.outcome, explanation.status) {
        // Routes and policies have bodies of their own.
        (Verdict::Answered | Verdict::AnsweredByPolicy, _) | (_, None) => None,
        (_, Some(status)) => place.errors.page(status),
    };
    if let Some(page) = page {
        explanation.error_page = Some(page.describe());
    }
    if is_call(request) {
        explanation.error_page = None;
    }
    explanation
}

/// Returns true for a gRPC call, which gets the status of gRPC in place of a body.
fn is_call(request: &Parts) -> bool {
    #[cfg(all(feature = "server", feature = "http2"))]
    return crate::server::connection::is_grpc_call(&request.method, &request.headers);
    #[cfg(not(all(feature = "server", feature = "http2")))]
    {
        let _ = request;
        false
    }
}

fn decided(
    place: &ExplainContext<'_>,
    assess: impl Fn(&Cluster, ClusterIndex) -> Assessment,
    request: &Parts,
    connection: ConnectionInfo,
) -> Explanation {
    let ExplainContext { snapshot, live, .. } = *place;
    let head = HttpHead::with_connection(request, connection);
    let mut explanation = Explanation::new();
    let found = snapshot.table().find(snapshot.routes(), &head);
    let matched = match &found {
        Lookup::Matched(index) => Some(*index),
        Lookup::MethodNotAllowed(_) | Lookup::NotFound => None,
    };
    // In every case: the user wants to know why the other routes do not match.
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
    // The checks from here on have the order of a real request.
    explanation.policies = route.policies().iter().map(described).collect();
    let filters = live.and_then(|generation| generation.route(index).extensions()?.filters());
    explanation.filters = match filters {
        Some(filters) => filters.names().map(str::to_owned).collect(),
        // Without a proxy the filters of the configuration are known.
        None => route.filters().iter().map(ToString::to_string).collect(),
    };
    let rejection = match live {
        Some(generation) => generation.route(index).rejection(),
        None => rejection(route, true),
    };
    if let Some(rejection) = rejection {
        explanation.route_rejection = Some(rejection.to_string());
        return explanation.ending(Verdict::RouteRejected, StatusCode::INTERNAL_SERVER_ERROR);
    }
    if let Err(error) = check_path(route, head.path()) {
        return explanation.rejecting(&error);
    }
    let mut edits = HeaderMutations::default();
    match policies::judged(place, index, request, head, &mut edits) {
        Ok(known) => {
            explanation.undecided_policies = known.undecided;
            explanation.rules = known.rules;
            if let Some((policy, reply)) = known.reply {
                let status = reply.status();
                let page = reply.page(&place.errors).map(ErrorPage::describe);
                explanation.error_page = page;
                explanation.location =
                    location(reply.into_response(&ErrorBodies::default()).headers());
                explanation.rejected = Some(format!("{policy} answers it"));
                return explanation.ending(Verdict::AnsweredByPolicy, status);
            }
        }
        Err(error) => return explanation.rejecting(&error),
    }
    if route.target().is_reply()
        && let Err(error) = check_length(&head, body_limit(place.max_request_body, route))
    {
        return explanation.rejecting(&error);
    }
    match reply(route, &head) {
        Ok(None) => {}
        Ok(Some(reply)) => {
            let status = reply.status();
            explanation.location = location(reply.headers());
            return explanation.ending(Verdict::Answered, status);
        }
        Err(error) => return explanation.rejecting(&error),
    }
    // Only a running proxy has an id by which it detects loops.
    let state = live.map(|generation| generation.route(index));
    if state.is_some_and(|state| state.is_loop(&head, head.classes())) {
        return explanation.ending(Verdict::LoopDetected, StatusCode::LOOP_DETECTED);
    }
    let index = match leads_to(place, route, &head, &mut explanation) {
        Ok(index) => index,
        Err(Nowhere::NoCluster) => {
            return explanation.ending(Verdict::NoCluster, StatusCode::SERVICE_UNAVAILABLE);
        }
        // Filters are not asked here.
        Err(Nowhere::NoPartition(_) | Nowhere::Failed) => {
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
    explanation
        .rules
        .extend(rules::rules(route, cluster, &request.method, limit));
    if let Err(error) = check_head(request, &head, cluster.upstream(), limit) {
        return explanation.rejecting(&error);
    }
    let bound = affinity(place, index, &head);
    explanation.affinity = bound.as_ref().map(|bound| bound.explained.clone());
    if let Some((failure, status)) = bound.as_ref().and_then(|bound| bound.rejected) {
        explanation.rejected = Some(failure.to_string());
        return explanation.ending(Verdict::NoDestination, status);
    }
    let kept = bound.and_then(|bound| cluster.destinations().get(bound.kept?.0 as usize));
    let eligible = assessment.eligible().map(|i| &cluster.destinations()[i]);
    // The first by id: the policy is not called, since that would take a turn.
    let first = || eligible.min_by_key(|destination| destination.id());
    let Some(destination) = kept.or_else(first) else {
        return explanation.ending(Verdict::NoDestination, StatusCode::SERVICE_UNAVAILABLE);
    };
    let guarded;
    let plan = match state {
        Some(state) => state.inner_plan(),
        None => {
            let guard = place.guard.filter(|_| guards(route));
            guarded = CompiledTransforms::of(route, guard);
            &*guarded
        }
    };
    match sent_request(&head.with_edits(&edits), route, plan, destination) {
        Ok(request) => {
            explanation.forwarded = Some(forwarded(&request, destination));
            explanation
        }
        Err(error) => explanation.rejecting(&error),
    }
}

/// Returns the cluster of a route for a request; among weighted clusters, the one that the request's
/// affinity key names, else the existing one with the largest share.
fn leads_to(
    place: &ExplainContext<'_>,
    route: &Route,
    head: &HttpHead<'_>,
    explanation: &mut Explanation,
) -> Result<ClusterIndex, Nowhere> {
    let cluster = match route.target() {
        RouteTarget::None | RouteTarget::Redirect(_) | RouteTarget::Respond(_) => None,
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
            if let Some(kept) = kept_cluster(place, targets, head) {
                explanation.keeps_cluster = true;
                return Ok(kept);
            }
            // `max_by_key` returns the last of equal maxima, so the order is reversed to get the
            // first.
            let existing = targets.iter().rev().filter(|t| t.weight() > 0);
            existing
                .filter_map(|t| Some((t.weight(), t.cluster()?)))
                .max_by_key(|(weight, _)| *weight)
                .map(|(_, cluster)| cluster)
        }
    };
    cluster.ok_or(Nowhere::NoCluster)
}

/// The URL that a response leads to.
fn location(headers: &HeaderMap) -> Option<String> {
    let location = headers.get(LOCATION)?;
    Some(String::from_utf8_lossy(location.as_bytes()).into_owned())
}

impl Explanation {
    fn new() -> Self {
        Self {
            outcome: Verdict::Matched,
            status: None,
            error_page: None,
            allow: Vec::new(),
            route: None,
            route_values: BTreeMap::new(),
            policies: Vec::new(),
            undecided_policies: Vec::new(),
            filters: Vec::new(),
            rules: Vec::new(),
            route_rejection: None,
            rejected: None,
            cluster: None,
            weighted_clusters: Vec::new(),
            keeps_cluster: false,
            partition: None,
            affinity: None,
            policy: None,
            panic: false,
            destinations: Vec::new(),
            forwarded: None,
            location: None,
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
