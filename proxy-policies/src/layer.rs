//! The policies of a route around it: as a filter, or as a layer where something is waited for.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use http::{Request, Response, request};
use proxy_runtime::filter::{Filter, FilterContext, Flow, RequestEdit};
use proxy_runtime::forward::RouteContext;
use proxy_runtime::layer::{ProxyRequestBody, RouteService};
use proxy_runtime::{ConnectionInfo, ProxyBody};
use tokio::time::Instant;
use tower_layer::Layer;
use tower_service::Service;

use crate::head::{Answer, Notes, TypedHead};
use crate::limiter::Permit;
use crate::named::{Named, Step, Visit, closed};

/// The policies of a route, in the order in which a request meets them.
#[derive(Clone, Debug)]
pub(crate) struct Guards(pub(crate) Arc<[Arc<Named>]>);

impl Guards {
    /// Returns true if no policy waits, and none holds anything until the response has ended.
    pub(crate) fn are_immediate(&self) -> bool {
        self.0.iter().all(|policy| policy.is_immediate())
    }
}

impl Filter for Guards {
    fn on_request(&self, head: &mut RequestEdit<'_>, context: &FilterContext<'_>) -> Flow {
        let mut visit = Visit {
            route: context.route,
            connection: context.connection,
            now: Instant::now(),
            claims: None,
        };
        for policy in &*self.0 {
            match policy.check(head, &mut visit) {
                Step::Pass(None) => {}
                Step::Answer(answer) => return answer.into_reply().into(),
                // Policies that wait are in a layer; here no decision is possible.
                Step::Pass(Some(_)) | Step::Wait(_) => return closed().into_reply().into(),
            }
        }
        Flow::Continue
    }
}

impl Layer<RouteService> for Guards {
    type Service = Guarded;

    fn layer(&self, rest: RouteService) -> Guarded {
        Guarded {
            guards: self.clone(),
            rest,
        }
    }
}

/// A route inside of its policies.
#[derive(Clone, Debug)]
pub(crate) struct Guarded {
    guards: Guards,
    rest: RouteService,
}

type Error = <RouteService as Service<Request<ProxyRequestBody>>>::Error;
type Answered = Result<Response<ProxyBody>, Error>;

impl Service<Request<ProxyRequestBody>> for Guarded {
    type Response = Response<ProxyBody>;
    type Error = Error;
    type Future = Pin<Box<dyn Future<Output = Answered> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<ProxyRequestBody>) -> Self::Future {
        let Self { guards, mut rest } = self.clone();
        Box::pin(async move {
            let (mut parts, body) = request.into_parts();
            let mut notes = Notes::default();
            let permits = match guards.ask(&mut parts, &mut notes).await {
                Ok(permits) => permits,
                Err(answer) => return Ok(answer.into_response(notes)),
            };
            let mut response = rest.call(Request::from_parts(parts, body)).await?;
            notes.apply(response.headers_mut());
            if !permits.is_empty() {
                response.body_mut().on_end(move |_| drop(permits));
            }
            Ok(response)
        })
    }
}

impl Guards {
    /// Asks each policy. Returns what is held until the response has ended.
    async fn ask(
        &self,
        parts: &mut request::Parts,
        notes: &mut Notes,
    ) -> Result<Vec<Permit>, Answer> {
        let context = parts.extensions.get::<RouteContext>().cloned();
        let context = context.ok_or_else(closed)?;
        let connection = parts.extensions.get::<ConnectionInfo>();
        let connection = connection.copied().unwrap_or_default();
        let mut claims = None;
        let mut permits = Vec::new();
        for policy in &*self.0 {
            let mut visit = Visit {
                route: context.route(),
                connection,
                now: Instant::now(),
                claims: claims.take(),
            };
            let mut head = TypedHead { parts, notes };
            let mut step = policy.check(&mut head, &mut visit);
            if let Step::Wait(pending) = step {
                let ended = pending.wait().await;
                let mut head = TypedHead { parts, notes };
                step = policy.end(ended, &mut head, &mut visit);
            }
            match step {
                Step::Pass(permit) => permits.extend(permit),
                Step::Answer(answer) => return Err(answer),
                Step::Wait(_) => return Err(closed()),
            }
            claims = visit.claims;
        }
        Ok(permits)
    }
}
