use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::request::Parts;
use http::{HeaderMap, HeaderName, Request, Response, StatusCode};
use hyper::body::Incoming;
use hyper::ext::ReasonPhrase;
use tokio::time::sleep;

use super::Answers;
use super::body::{self, Content, Reply};
use super::connection::{ClosedByFault, Peer};
use crate::cluster::ErrorCode;
use crate::gateway::admin;
use crate::gateway::calls::Call;
use crate::gateway::emulator::Shared;
use crate::gateway::faults::FaultAction;
use crate::gateway::route::{NoRoute, Parameters, Route, Router};
use crate::gateway::security::AccessDenied;
use crate::gateway::wire::{Answer, ApiError, Arguments};

/// The size of the gateway's buffer for the head of a request.
const MAX_HEAD: usize = 8 * 1024;
const CLUSTER_ID: HeaderName = HeaderName::from_static("clusterid");
const REQUEST_ID: HeaderName = HeaderName::from_static("x-servicefabricrequestid");

/// The handler of requests.
#[derive(Debug)]
pub(crate) struct Gateway {
    router: Router,
    shared: Arc<Shared>,
}

impl Gateway {
    /// Creates the handler for this cluster.
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        Self {
            router: Router::new(),
            shared,
        }
    }

    fn fault_for(&self, head: &Parts) -> Option<FaultAction> {
        let path = head.uri.path();
        if admin::is_own(path) {
            return None;
        }
        self.shared.faults().take(head.method.as_str(), path)
    }

    async fn answer(
        &self,
        head: &Parts,
        body: &mut Option<Incoming>,
        peer: Peer,
        fault: Option<&FaultAction>,
    ) -> Result<Answer, RequestRejected> {
        check_length(head)?;
        let found = self.router.find(&head.method, head.uri.path());
        let (reads, anonymous) = match &found {
            Ok((route, _)) => (route.reads, route.anonymous),
            // A path without a route needs the rights of a read.
            Err(_) => (true, false),
        };
        // Access is checked before the path, so that a client without rights learns nothing about paths.
        self.shared
            .security()
            .admit(&head.headers, peer, reads, anonymous)
            .map_err(RequestRejected::Access)?;
        self.check_cluster(&head.headers)?;
        if admin::is_own(head.uri.path()) {
            admin::check_origin(head)?;
        }
        let (route, parameters) = match found {
            Ok(found) => found,
            Err(NoRoute::Unknown) => return Err(unknown(head.uri.path()).into()),
            Err(NoRoute::Encoding) => {
                return Err(ApiError::invalid("the path is not UTF-8").into());
            }
            Err(NoRoute::Shape) => {
                return Err(ApiError::invalid(format!(
                    "there is no call {} {}",
                    head.method,
                    head.uri.path()
                ))
                .into());
            }
        };
        let arguments = Arguments::parse(head.uri.query().unwrap_or_default())?;
        let body = match body.take() {
            Some(body) if route.uploads => body::upload(head, body).await?,
            Some(body) => body::read(head, body).await?.into(),
            None => Bytes::new().into(),
        };
        // Time moves asynchronously, and the call below holds the lock of the cluster.
        if route.moves_time {
            admin::move_time(&self.shared, &body.kept).await?;
        }
        self.call(route, parameters, arguments, &body, fault)
            .map_err(RequestRejected::Error)
    }

    fn call(
        &self,
        route: &Route,
        parameters: Parameters,
        arguments: Arguments,
        body: &Content,
        fault: Option<&FaultAction>,
    ) -> Result<Answer, ApiError> {
        let version = route.version(arguments.get("api-version"))?;
        self.shared.with_cluster(|cluster| {
            (route.handler)(&mut Call {
                cluster,
                shared: &self.shared,
                parameters,
                arguments,
                version,
                body: &body.kept,
                size: body.size,
                pages: self.shared.faults().pages(fault),
            })
        })
    }

    /// Checks the cluster id, if the client has sent one.
    fn check_cluster(&self, headers: &HeaderMap) -> Result<(), RequestRejected> {
        let meant = headers.get(CLUSTER_ID).map(http::HeaderValue::as_bytes);
        match (meant, self.shared.cluster_id()) {
            (Some(meant), Some(own)) if !meant.eq_ignore_ascii_case(own.as_bytes()) => Err(
                RequestRejected::Access(AccessDenied::Forbidden("Wrong cluster")),
            ),
            _ => Ok(()),
        }
    }
}

impl Answers for Gateway {
    /// Handles a request. Fails only if a fault closes the connection.
    async fn serve(
        &self,
        request: Request<Incoming>,
        peer: Peer,
    ) -> Result<Response<Reply>, ClosedByFault> {
        let (head, body) = request.into_parts();
        let mut body = Some(body);
        let fault = self.fault_for(&head);
        if let Some(FaultAction::Delay { milliseconds }) = fault {
            sleep(Duration::from_millis(milliseconds)).await;
        }
        let (answer, reason) = match fault.as_ref().and_then(FaultAction::instead) {
            Some(answer) => (answer, None),
            None => match self.answer(&head, &mut body, peer, fault.as_ref()).await {
                Ok(answer) => (answer, None),
                Err(RequestRejected::Error(error)) => (error.into(), None),
                Err(RequestRejected::Access(rejection)) => rejection.answer(),
            },
        };
        // The body of an early response is read all the same: with unread bytes the connection could only be
        // closed, perhaps just as the client reuses it.
        if let Some(unread) = body {
            let _ = body::read(&head, unread).await;
        }
        tracing::debug!(
            method = %head.method,
            path = head.uri.path(),
            status = answer.status.as_u16(),
            request = head.headers.get(REQUEST_ID).and_then(|id| id.to_str().ok()),
            ?fault,
            "answered"
        );
        let reply = match fault {
            Some(FaultAction::Close) => return Err(ClosedByFault),
            Some(FaultAction::CloseMidAnswer) => Reply::half(&answer.body),
            Some(FaultAction::Cut { bytes }) => {
                let end = bytes.min(answer.body.len());
                Reply::whole(answer.body.slice(..end))
            }
            _ => Reply::whole(answer.body),
        };
        let mut response = Response::new(reply);
        *response.status_mut() = answer.status;
        *response.headers_mut() = answer.headers;
        if let Some(reason) = reason {
            response
                .extensions_mut()
                .insert(ReasonPhrase::from_static(reason.as_bytes()));
        }
        Ok(response)
    }
}

/// The reason for rejecting a request.
enum RequestRejected {
    Error(ApiError),
    Access(AccessDenied),
}

impl From<ApiError> for RequestRejected {
    fn from(error: ApiError) -> Self {
        Self::Error(error)
    }
}

/// Features of real clusters that the emulator lacks, by the first segment of their paths.
const NOT_THERE: [(&str, &str); 6] = [
    ("BackupRestore", "backup and restore"),
    ("ComposeDeployments", "compose deployments"),
    ("EventsStore", "event store"),
    ("Faults", "fault analysis"),
    ("Resources", "mesh resources"),
    ("Tools", "Chaos"),
];

/// Returns the error for a path that belongs to no call.
fn unknown(path: &str) -> ApiError {
    let first = path.split('/').nth(1).unwrap_or_default();
    match NOT_THERE.iter().find(|(segment, _)| *segment == first) {
        Some((_, what)) => ApiError::new(
            ErrorCode::NotImplemented,
            format!("the emulator has no {what}"),
        ),
        None => ApiError {
            status: StatusCode::NOT_FOUND,
            ..ApiError::invalid(format!("there is no path {path}"))
        },
    }
}

/// Checks the length of the head against the limit of the real gateway, which gives no explanation.
fn check_length(head: &Parts) -> Result<(), ApiError> {
    let line =
        head.method.as_str().len() + head.uri.path_and_query().map_or(1, |p| p.as_str().len());
    let fields: usize = head
        .headers
        .iter()
        .map(|(name, value)| name.as_str().len() + value.len() + 4)
        .sum();
    let length = line + fields;
    if length <= MAX_HEAD {
        return Ok(());
    }
    Err(ApiError {
        status: StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
        ..ApiError::invalid(format!(
            "the head of the request has {length} bytes, but {MAX_HEAD} are read; shorten the address or the fields"
        ))
    })
}
