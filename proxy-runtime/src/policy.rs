//! Policies: checks before a route, which its configuration names by keys such as `RateLimiterPolicy`.
//!
//! The proxy does not know what a policy does. A [`PolicySource`], registered with
//! [`ProxyBuilder::policies`](crate::ProxyBuilder::policies), makes one [`RoutePolicies`] of all
//! policies of a route; the crate `proxy-policies` has one for the policies of ASP.NET.
//!
//! A request meets the policies of its route before anything else is done with it: before the
//! route's own layers and filters, and before a cluster is chosen. They may wait; that changes
//! nothing of what the client gets. A route without policies has no overhead. A route whose
//! `AuthorizationPolicy` no source honours answers 500 to every request.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use http::header::UPGRADE;
use http::request::Parts;
use http::{Method, Request, Response, StatusCode};
use log_sink::Seldom;
use proxy_model::compiled::{ChosenPolicy, Route};
use proxy_model::config::PolicyKind;
use proxy_model::{Problems, Snapshot};
use tower_layer::Layer;
use tower_service::Service;
use tracing::error;

use crate::BoxError;
use crate::connection::ConnectionInfo;
use crate::contain::{contained, contained_call};
#[cfg(feature = "admin")]
use crate::error::Cause;
use crate::error::{ForwardError, ForwardErrorKind};
use crate::filter::{Reply, RequestEdit};
use crate::head::headers::strip_options;
use crate::head::{ErrorBodies, HeaderMutations, HeldValues, HttpHead};
use crate::layer::{ProxyRequestBody, RouteService};
use crate::observe::{LOG_PAUSE, targets};
use crate::response::ProxyBody;
use crate::transform::CompiledTransforms;

/// Creates the policies of routes.
pub trait PolicySource: Send + Sync + 'static {
    /// Returns the policies of each route of a configuration, in the order of the routes. State of a
    /// policy that is the same as in the configuration before should be kept.
    ///
    /// # Errors
    ///
    /// Fails if a policy cannot be honoured. The current configuration stays.
    fn of_routes(
        &self,
        snapshot: &Snapshot,
    ) -> Result<Vec<Option<Arc<dyn RoutePolicies>>>, Problems>;

    /// Returns the numbers of decisions so far, for metrics. Default: none.
    fn counts(&self) -> Vec<PolicyCount> {
        Vec::new()
    }

    /// Returns the policies that cannot decide now, for the admin API. Default: none.
    fn failing(&self) -> Vec<FailingPolicy> {
        Vec::new()
    }
}

/// A policy that needs a service which does not answer. A rate limiter continues with a share of its limit; another
/// policy rejects requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailingPolicy {
    /// The kind of the policy.
    pub kind: PolicyKind,
    /// The name of the policy.
    pub name: Arc<str>,
    /// The service and its error: `http://auth/verify: connection refused`.
    pub detail: String,
}

impl FailingPolicy {
    /// The cause of requests that are rejected meanwhile.
    #[cfg(feature = "admin")]
    pub(crate) fn cause(&self) -> Cause {
        match self.kind {
            PolicyKind::RateLimiter => Cause::OverShare,
            _ => Cause::AuthorizationUnavailable,
        }
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
pub trait RoutePolicies: Send + Sync + 'static {
    /// Decides on a request before filters, layers and forwarding. Must not block.
    ///
    /// A value passed to [`hold`](RequestEdit::hold) is dropped when the response, or the tunnel that it began, has
    /// ended.
    fn judge(
        &self,
        head: &mut RequestEdit<'_>,
        route: &Route,
        connection: ConnectionInfo,
    ) -> PolicyDecision;

    /// Judges a request for [`explain`](crate::explain) as [`judge`](Self::judge) does, as far as the
    /// policies decide alone: nothing is asked, waited for or counted. Must not block. Default: nothing is known.
    fn preview(
        &self,
        head: &mut RequestEdit<'_>,
        route: &Route,
        connection: ConnectionInfo,
    ) -> PolicyPreview {
        let _ = (head, connection);
        PolicyPreview {
            undecided: undecided(route),
            ..PolicyPreview::default()
        }
    }
}

/// The part of a decision that is known without asking anybody.
#[derive(Clone, Debug, Default)]
pub struct PolicyPreview {
    /// The policy that answers the request, as its route names it, with its reply: `AuthorizationPolicy staff`.
    pub reply: Option<(String, Reply)>,
    /// The policies that are not asked: a service, a password or a count decides.
    pub undecided: Vec<String>,
    /// Limits that apply to the request, one sentence each, with what is known of them at present.
    pub rules: Vec<String>,
}

/// Returns the policies of a route that the configuration defines.
pub(crate) fn undecided(route: &Route) -> Vec<String> {
    let policies = route.policies().iter();
    let defined = policies.filter(|policy| policy.is_defined());
    defined.map(described).collect()
}

/// Returns the kind and the name of a policy as its route has them: `RateLimiterPolicy api`.
pub(crate) fn described(policy: &ChosenPolicy) -> String {
    format!("{} {}", policy.kind().route_key(), policy.name())
}

/// The decision about a request.
pub enum PolicyDecision {
    /// The request continues.
    Pass,
    /// The request is answered.
    Respond(Reply),
    /// The decision takes time.
    Wait(Waiting),
}

/// A wait for a decision. It is dropped if the client leaves meanwhile, or if the route's `Timeout` ends.
pub type Waiting = Pin<Box<dyn Future<Output = Decide> + Send>>;

/// The rest of the decision after a wait.
pub type Decide = Box<dyn FnOnce(&mut RequestEdit<'_>, &Route) -> PolicyDecision + Send>;

impl fmt::Debug for PolicyDecision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Pass => "Pass",
            Self::Respond(_) => "Respond",
            Self::Wait(_) => "Wait",
        })
    }
}

/// Calls the code of policies, and contains its panics.
pub(crate) fn call(
    route: &Route,
    judge: impl FnOnce() -> PolicyDecision,
) -> Result<PolicyDecision, ForwardError> {
    // A panic of a policy ends this request with 500, and not the worker.
    match contained_call(judge) {
        Ok(PolicyDecision::Respond(reply)) => Ok(PolicyDecision::Respond(reply.of_policy())),
        Ok(verdict) => Ok(verdict),
        Err(panic) => Err(panicked(route, &panic.0)),
    }
}

/// Waits for a decision.
pub(crate) async fn wait(route: &Route, waiting: Waiting) -> Result<Decide, ForwardError> {
    let waited = contained(waiting).await;
    waited.map_err(|panic| panicked(route, &panic.0))
}

fn panicked(route: &Route, panic: &str) -> ForwardError {
    // A policy that panics at each request must not fill the log.
    static SELDOM: Seldom = Seldom::new(LOG_PAUSE);
    if let Some(left_out) = SELDOM.pass() {
        error!(target: targets::REQUEST, route = %route.id(), panic, left_out, "a policy panicked");
    }
    ForwardError::new(
        ForwardErrorKind::Extension,
        StatusCode::INTERNAL_SERVER_ERROR,
    )
}

/// Judges a request in `http` types, waits included. Returns the reply in place of a response.
///
/// # Errors
///
/// The policies panicked.
pub(crate) async fn judge_http(
    policies: &dyn RoutePolicies,
    route: &Route,
    head: &HttpHead<'_>,
    edits: &mut HeaderMutations,
) -> Result<Option<Reply>, ForwardError> {
    let connection = head.connection();
    let mut verdict = call(route, || {
        policies.judge(&mut RequestEdit::of_http(*head, edits), route, connection)
    })?;
    loop {
        match verdict {
            PolicyDecision::Pass => return Ok(None),
            PolicyDecision::Respond(reply) => return Ok(Some(reply)),
            PolicyDecision::Wait(waiting) => {
                let decide = wait(route, waiting).await?;
                verdict = call(route, || {
                    decide(&mut RequestEdit::of_http(*head, edits), route)
                })?;
            }
        }
    }
}

/// The policies of a route that has layers, around these.
pub(crate) struct Around {
    pub(crate) policies: Arc<dyn RoutePolicies>,
    pub(crate) route: Arc<Route>,
}

impl Layer<RouteService> for Around {
    type Service = Guarded;

    fn layer(&self, rest: RouteService) -> Guarded {
        Guarded {
            policies: Arc::clone(&self.policies),
            plan: CompiledTransforms::of(&self.route, None),
            route: Arc::clone(&self.route),
            rest,
        }
    }
}

/// The values that policies hold, for the exchange inside of the layers: it keeps the request until its tunnel has
/// ended, while the body of the response ends with the head.
#[derive(Clone)]
struct HeldByTunnel(#[expect(dead_code, reason = "held")] Arc<HeldValues>);

fn may_begin_tunnel(parts: &Parts) -> bool {
    parts.method == Method::CONNECT || parts.headers.contains_key(UPGRADE)
}

/// The layers of a route inside of its policies.
#[derive(Clone)]
pub(crate) struct Guarded {
    policies: Arc<dyn RoutePolicies>,
    route: Arc<Route>,
    plan: Arc<CompiledTransforms>,
    rest: RouteService,
}

impl Service<Request<ProxyRequestBody>> for Guarded {
    type Response = Response<ProxyBody>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Response<ProxyBody>, BoxError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<ProxyRequestBody>) -> Self::Future {
        let Self {
            policies,
            route,
            plan,
            rest,
        } = self.clone();
        Box::pin(async move {
            let (mut parts, body) = request.into_parts();
            let errors = parts.extensions.remove::<ErrorBodies>();
            let errors = errors.unwrap_or_default();
            let mut edits = HeaderMutations::default();
            let head = HttpHead::new(&parts);
            let judged = judge_http(&*policies, &route, &head, &mut edits).await?;
            // Notes are for the response, which does not exist yet.
            let notes = edits.take_notes();
            let held = Arc::new(edits.take_held());
            let mut response = match judged {
                Some(reply) => {
                    let mut response = reply.into_response(&errors).map(ProxyBody::text);
                    notes.apply_to(response.headers_mut());
                    let status = response.status();
                    plan.change_response(status, response.headers_mut());
                    response
                }
                None => {
                    // `Connection` must not take away what the policies tell the destination.
                    strip_options(&mut parts.headers);
                    edits.apply_to(&mut parts.headers);
                    // A tunnel's response has no body that would end with it: the exchange keeps the values instead.
                    if !held.is_empty() && may_begin_tunnel(&parts) {
                        parts.extensions.insert(HeldByTunnel(Arc::clone(&held)));
                    }
                    let request = Request::from_parts(parts, body);
                    let mut response = rest.answer(request).await?;
                    notes.apply_to(response.headers_mut());
                    response
                }
            };
            // Held values, such as the permit of a limiter, live until the end of the body and not only of the head.
            if !held.is_empty() {
                response.body_mut().on_end(move |_| drop(held));
            }
            Ok(response)
        })
    }
}
