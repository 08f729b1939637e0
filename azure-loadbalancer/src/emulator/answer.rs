//! The handling of requests.

use bytes::Bytes;
use http::header::{
    AUTHORIZATION, CONTENT_TYPE, ETAG, HOST, IF_MATCH, IF_NONE_MATCH, RETRY_AFTER, WWW_AUTHENTICATE,
};
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode};
use serde_json::Value;

use super::fault::FaultAction;
use super::inside;
use super::json;
use super::kinds;
use super::log::RequestClass;
use super::machine::{Conditions, Machine};
use super::operation::Failing;
use super::path::RequestTarget;
use super::references::References;
use super::rejection::Rejection;
use super::resource_calls::{group_not_found, show_group};
use super::{control, identity, page};

/// The number of reads left to a subscription, as responses report it.
const READS_LEFT: u32 = 11_999;
const WRITES_LEFT: u32 = 1_199;

/// The parts of a request that its response depends on.
pub(super) struct RequestContext<'a> {
    pub(super) method: &'a Method,
    pub(super) query: Vec<(String, String)>,
    /// The origin of the request URL: `http://127.0.0.1:1234`.
    pub(super) origin: String,
    pub(super) path: &'a str,
    pub(super) body: &'a [u8],
    pub(super) conditions: Conditions,
    pub(super) failing: Option<Failing>,
}

/// A response.
pub(super) struct Reply {
    pub(super) status: StatusCode,
    pub(super) body: Option<Value>,
    pub(super) headers: Vec<(&'static str, String)>,
}

impl Reply {
    pub(super) fn ok(body: Value) -> Self {
        Self {
            status: StatusCode::OK,
            body: Some(body),
            headers: Vec::new(),
        }
    }

    pub(super) fn empty(status: StatusCode) -> Self {
        Self {
            status,
            body: None,
            headers: Vec::new(),
        }
    }
}

impl RequestContext<'_> {
    pub(super) fn parameter(&self, name: &str) -> Option<&str> {
        let found = self
            .query
            .iter()
            .find(|(key, _)| key.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }
}

impl Machine {
    /// Handles a request. `None` if a fault loses it or its response.
    ///
    /// URLs in responses begin like the request's own: with its absolute URI, else its `Host`.
    pub fn answer(&mut self, request: &Request<Bytes>) -> Option<Response<Bytes>> {
        let path = request.uri().path();
        if path == "/emulator" || path.starts_with("/emulator/") {
            return Some(finish(control::answer(self, request)));
        }
        // Pending operations progress with every request.
        self.tick();
        let struck = self.faults.strike(request.method(), path, request.body());
        let target = request
            .uri()
            .path_and_query()
            .map_or("/", |target| target.as_str());
        if struck == Some(FaultAction::LoseRequest) {
            self.log.add(request.method(), target, None, None);
            return None;
        }
        let result = match struck.as_ref().and_then(FaultAction::rejection) {
            Some(rejection) => Err(rejection),
            None => self.handle(request, struck.as_ref()),
        };
        let code = result
            .as_ref()
            .err()
            .map(|rejection| rejection.code.clone());
        let mut response = finish(result);
        self.describe(request, response.headers_mut());
        // The request was handled, but the client does not learn that.
        let is_lost = matches!(struck, Some(FaultAction::LoseAnswer));
        let status = (!is_lost).then(|| response.status());
        self.log.add(request.method(), target, status, code);
        (!is_lost).then_some(response)
    }

    /// Adds the headers of every response: the request id, and the remaining limits. No limit is enforced.
    fn describe(&self, request: &Request<Bytes>, headers: &mut HeaderMap) {
        let counts = self.log.counts();
        let number = counts.reads + counts.writes + counts.polls + 1;
        let is_write =
            RequestClass::of(request.method(), request.uri().path()) == RequestClass::Write;
        let (limit, left) = match is_write {
            true => ("x-ms-ratelimit-remaining-subscription-writes", WRITES_LEFT),
            false => ("x-ms-ratelimit-remaining-subscription-reads", READS_LEFT),
        };
        let id = format!("00000000-0000-4000-8002-{number:012x}");
        for (name, value) in [("x-ms-request-id", id), (limit, left.to_string())] {
            if let Ok(value) = HeaderValue::from_str(&value) {
                headers.insert(name, value);
            }
        }
    }

    fn handle(
        &mut self,
        request: &Request<Bytes>,
        fault: Option<&FaultAction>,
    ) -> Result<Reply, Rejection> {
        let path = request.uri().path();
        // The token endpoint itself needs no token.
        if let Some(reply) = identity::answer(request, self.options.token.as_deref()) {
            return reply;
        }
        self.check_token(request)?;
        let header = |name| {
            request
                .headers()
                .get(name)
                .and_then(|value: &HeaderValue| value.to_str().ok())
        };
        let query =
            url::form_urlencoded::parse(request.uri().query().unwrap_or_default().as_bytes());
        let origin = match (request.uri().scheme_str(), request.uri().authority()) {
            (Some(scheme), Some(authority)) => format!("{scheme}://{authority}"),
            _ => format!("http://{}", header(HOST).unwrap_or("localhost")),
        };
        let call = RequestContext {
            method: request.method(),
            query: query.into_owned().collect(),
            origin,
            path,
            body: request.body(),
            conditions: Conditions {
                if_match: header(IF_MATCH).map(str::to_owned),
                if_none_match: header(IF_NONE_MATCH).map(str::to_owned),
            },
            failing: fault.and_then(FaultAction::failing),
        };
        check_version(&call)?;
        let target = RequestTarget::parse(path)?;
        if fault == Some(&FaultAction::Interfere) {
            self.interfere(&target);
        }
        self.dispatch(&call, target)
    }

    fn check_token(&self, request: &Request<Bytes>) -> Result<(), Rejection> {
        let Some(token) = &self.options.token else {
            return Ok(());
        };
        let given = request
            .headers()
            .get(AUTHORIZATION)
            .and_then(|value| value.to_str().ok());
        let given = given.and_then(|value| value.strip_prefix("Bearer "));
        if given == Some(token.as_str()) {
            return Ok(());
        }
        let message = match given {
            Some(_) => "The access token is invalid.",
            None => "Authentication failed. The 'Authorization' header is missing.",
        };
        Err(Rejection::new(
            StatusCode::UNAUTHORIZED,
            "AuthenticationFailed",
            message,
        ))
    }

    /// Simulates a concurrent write by another client.
    fn interfere(&mut self, target: &RequestTarget) {
        if let RequestTarget::Resource(place) | RequestTarget::Inside { parent: place, .. } = target
        {
            self.store.touch(&place.key());
        }
    }

    fn dispatch(
        &mut self,
        call: &RequestContext<'_>,
        target: RequestTarget,
    ) -> Result<Reply, Rejection> {
        match (call.method, target) {
            (&Method::GET, RequestTarget::Groups { subscription }) => {
                let groups = self.store.groups(&subscription).map(show_group).collect();
                Ok(page::reply(call, groups, self.options.page_size)?)
            }
            (
                &(Method::GET | Method::HEAD),
                RequestTarget::Group {
                    subscription,
                    group,
                },
            ) => {
                let found = self.store.group(&subscription, &group);
                let found = found.ok_or_else(|| group_not_found(&group))?;
                Ok(Reply::ok(show_group(found)))
            }
            (
                &Method::PUT,
                RequestTarget::Group {
                    subscription,
                    group,
                },
            ) => self.put_group(call, &subscription, &group),
            (&Method::GET, RequestTarget::Everywhere { subscription, kind }) => {
                let prefix = format!("/subscriptions/{}/", subscription.to_ascii_lowercase());
                self.list(call, |store_key, of| {
                    of == kind && store_key.starts_with(&prefix)
                })
            }
            (
                &Method::GET,
                RequestTarget::Collection {
                    subscription,
                    group,
                    kind,
                },
            ) => {
                if self.store.group(&subscription, &group).is_none() {
                    return Err(group_not_found(&group));
                }
                let references = References::of(&self.store);
                let found = self.store.collection(&subscription, &group, kind);
                let found = found
                    .map(|resource| kinds::render(&references, resource))
                    .collect();
                self.listed(call, found)
            }
            (&Method::GET, RequestTarget::Operation { id, is_result }) => {
                self.operation(&id, is_result)
            }
            (&Method::GET, RequestTarget::Resource(place)) => self.read(&place),
            (&Method::PUT, RequestTarget::Resource(place)) => {
                let body = json::object(call.body)?;
                self.put_resource(call, &place, body)
            }
            (&Method::PATCH, RequestTarget::Resource(place)) => self.patch_tags(call, &place),
            (&Method::DELETE, RequestTarget::Resource(place)) => {
                let begun = self.remove(&place, &call.conditions, call.failing.clone())?;
                let Some(number) = begun else {
                    return Ok(Reply::empty(StatusCode::NO_CONTENT));
                };
                let mut reply = Reply::empty(StatusCode::ACCEPTED);
                reply.headers = self.poll_headers(call, &place, number, true);
                Ok(reply)
            }
            (_, RequestTarget::Inside { parent, rest }) => {
                inside::answer(self, call, &parent, &rest)
            }
            (method, _) => Err(method_not_allowed(method)),
        }
    }
}

/// Checks that the call has an API version. Any version is accepted.
fn check_version(call: &RequestContext<'_>) -> Result<(), Rejection> {
    let Some(version) = call.parameter("api-version") else {
        let message =
            "The api-version query parameter (?api-version=) is required for all requests.";
        return Err(Rejection::bad("MissingApiVersionParameter", message));
    };
    let date = version.strip_suffix("-preview").unwrap_or(version);
    let parts: Vec<&str> = date.split('-').collect();
    let is_digits =
        |text: &str, length| text.len() == length && text.bytes().all(|byte| byte.is_ascii_digit());
    let is_date = matches!(parts.as_slice(), [year, month, day]
        if is_digits(year, 4) && is_digits(month, 2) && is_digits(day, 2));
    is_date.then_some(()).ok_or_else(|| {
        Rejection::bad(
            "InvalidApiVersionParameter",
            format!("The api-version '{version}' is invalid."),
        )
    })
}

pub(super) fn method_not_allowed(method: &Method) -> Rejection {
    let message = format!("The method {method} is not supported here.");
    Rejection::new(StatusCode::METHOD_NOT_ALLOWED, "MethodNotAllowed", message)
}

/// Serialises a result as a response.
fn finish(result: Result<Reply, Rejection>) -> Response<Bytes> {
    let reply = result.unwrap_or_else(|rejection| {
        let mut headers = Vec::new();
        if let Some(seconds) = rejection.retry_after {
            headers.push((RETRY_AFTER.as_str(), seconds.to_string()));
        }
        if rejection.status == StatusCode::UNAUTHORIZED {
            headers.push((WWW_AUTHENTICATE.as_str(), "Bearer".to_owned()));
        }
        Reply {
            status: rejection.status,
            body: Some(rejection.body()),
            headers,
        }
    });
    let etag = reply.body.as_ref().and_then(|body| body["etag"].as_str());
    let etag = etag.and_then(|etag| HeaderValue::from_str(etag).ok());
    let body = reply
        .body
        .map_or_else(Bytes::new, |body| Bytes::from(body.to_string()));
    let mut response = Response::new(body);
    *response.status_mut() = reply.status;
    let headers = response.headers_mut();
    headers.insert(
        CONTENT_TYPE,
        HeaderValue::from_static("application/json; charset=utf-8"),
    );
    if let Some(etag) = etag {
        headers.insert(ETAG, etag);
    }
    for (name, value) in reply.headers {
        // A value from the request may have bytes that no header can carry.
        if let Ok(value) = HeaderValue::from_str(&value) {
            headers.insert(name, value);
        }
    }
    response
}
