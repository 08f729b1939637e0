//! Forward authentication: another service decides, by the head of each request.
//!
//! The service gets a GET with the headers of the request and `X-Forwarded-Method`, `-Proto`, `-Host`, `-Uri` and
//! `-For`; the body of the request is not sent. With 2xx the request passes. 3xx and 4xx are answered
//! to the client as they are.
//! Everything else closes the route.
//!
//! A request to the service carries a random member of the policy in `CDN-Loop` (RFC 8586). A request that arrives with
//! it gets 508: the address leads back to the policy, which would ask itself without end.

use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use discovery_http::{Transport, TransportError, TransportErrorKind};
use http::header::{
    CONNECTION, CONTENT_LENGTH, EXPECT, FORWARDED, HOST, HeaderMap, HeaderName, HeaderValue,
    PROXY_AUTHENTICATE, PROXY_AUTHORIZATION, TE, TRAILER, TRANSFER_ENCODING, UPGRADE,
};
use http::{Method, Request, Response, StatusCode, Uri};
use proxy_runtime::Cause;

use super::service::{Service, ServiceKind, unavailable, with_causes};
use super::{Claims, Judged};
use crate::config::ForwardConfig;
use crate::head::{Answer, Head};
use crate::named::Visit;

/// The longest body of the authorization service that is passed to a client, in bytes.
const LONGEST_BODY: usize = 64 * 1024;
/// The headers of messages about their connection and their framing, which are not passed on in either direction.
const OF_CONNECTION: [HeaderName; 9] = [
    CONNECTION,
    CONTENT_LENGTH,
    EXPECT,
    PROXY_AUTHENTICATE,
    PROXY_AUTHORIZATION,
    TE,
    TRAILER,
    TRANSFER_ENCODING,
    UPGRADE,
];
const CDN_LOOP: HeaderName = HeaderName::from_static("cdn-loop");
const KEEP_ALIVE: HeaderName = HeaderName::from_static("keep-alive");
const PROXY_CONNECTION: HeaderName = HeaderName::from_static("proxy-connection");
const FORWARDED_METHOD: HeaderName = HeaderName::from_static("x-forwarded-method");
const FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");
const FORWARDED_HOST: HeaderName = HeaderName::from_static("x-forwarded-host");
const FORWARDED_URI: HeaderName = HeaderName::from_static("x-forwarded-uri");
const FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");

/// A service that authorizes.
pub(super) struct ForwardAuth {
    address: Uri,
    /// `None`: all headers.
    sent: Option<Arc<[HeaderName]>>,
    /// Headers of the service's response that the destination gets.
    copied: Arc<[HeaderName]>,
    trusts_forwarded: bool,
    timeout: Duration,
    transport: Arc<dyn Transport>,
    service: Arc<Service>,
    /// The policy's member of `CDN-Loop`. Not that of the proxy: the service may be behind another route of it.
    member: HeaderValue,
}

/// A request to the service.
pub(crate) struct Asking {
    request: Request<Bytes>,
    copied: Arc<[HeaderName]>,
    timeout: Duration,
    transport: Arc<dyn Transport>,
    service: Arc<Service>,
}

impl ForwardAuth {
    /// # Errors
    ///
    /// The settings are none that were read.
    pub(super) fn new(
        policy: &Arc<str>,
        config: &ForwardConfig,
        transport: Arc<dyn Transport>,
    ) -> Result<Self, String> {
        let names = |names: &[String]| -> Result<Arc<[HeaderName]>, String> {
            let parsed = names.iter().map(|name| name.parse());
            let parsed: Result<_, http::header::InvalidHeaderName> = parsed.collect();
            parsed.map_err(|error| error.to_string())
        };
        let address: Uri = config
            .address
            .parse()
            .map_err(|_| "the address is no URL")?;
        Ok(Self {
            service: Arc::new(Service::new(ServiceKind::Authorization, policy, &address)),
            address,
            sent: config.request_headers.as_deref().map(names).transpose()?,
            copied: names(&config.response_headers)?,
            trusts_forwarded: config.trusts_forwarded,
            timeout: config.timeout.duration(),
            transport,
            member: member(),
        })
    }

    /// The service and its error, while it does not answer.
    pub(super) fn failing(&self) -> Option<String> {
        self.service.failing()
    }

    /// Removes the headers that only the authorization service may set.
    pub(super) fn clean(&self, head: &mut impl Head) {
        for name in &*self.copied {
            head.remove(name.as_str());
        }
    }

    /// Starts the call to the authorization service for a request.
    ///
    /// # Errors
    ///
    /// The request is such a call itself.
    pub(super) fn ask(&self, head: &impl Head, visit: &Visit<'_>) -> Result<Asking, Judged> {
        let received = received(head);
        if self.has_asked(&received) {
            let answer = Answer::new(StatusCode::LOOP_DETECTED).because(Cause::LoopDetected);
            return Err(Judged::Denied(answer.saying("Loop Detected.")));
        }
        let mut headers = HeaderMap::new();
        // The service judges the headers that the destination gets.
        let is_named = |name: &HeaderName| head.is_for_connection(name.as_str());
        for (name, value) in &received {
            let is_sent = self.sent.as_deref().is_none_or(|sent| sent.contains(name));
            if is_sent && *name != HOST && !is_of_connection(name) && !is_named(name) {
                headers.append(name, value.clone());
            }
        }
        // What the proxy says of the request; what the client says of it only if that is to be trusted.
        let host = match head.authority() {
            "" => None,
            authority => HeaderValue::from_str(authority).ok(),
        };
        let target = match head.query() {
            Some(query) => HeaderValue::try_from(format!("{}?{query}", head.path())),
            None => HeaderValue::from_str(head.path()),
        };
        let scheme = if visit.connection.tls {
            "https"
        } else {
            "http"
        };
        let client = visit.connection.client_address();
        let said = [
            (FORWARDED_METHOD, HeaderValue::from_str(head.method()).ok()),
            (FORWARDED_PROTO, Some(HeaderValue::from_static(scheme))),
            (FORWARDED_HOST, host),
            (FORWARDED_URI, target.ok()),
            (
                FORWARDED_FOR,
                client.and_then(|client| HeaderValue::from_str(&client.to_string()).ok()),
            ),
        ];
        if !self.trusts_forwarded {
            headers.remove(FORWARDED);
        }
        for (name, value) in said {
            if self.trusts_forwarded && received.contains_key(&name) {
                let claimed = received.get_all(&name).iter().cloned();
                headers.remove(&name);
                for value in claimed {
                    headers.append(&name, value);
                }
                continue;
            }
            match value {
                Some(value) => drop(headers.insert(name, value)),
                None => drop(headers.remove(name)),
            }
        }
        // Whatever `RequestHeaders` and `Connection` name: without it, no proxy on the way can detect a loop.
        headers.remove(CDN_LOOP);
        for passed in received.get_all(CDN_LOOP) {
            headers.append(CDN_LOOP, passed.clone());
        }
        headers.append(CDN_LOOP, self.member.clone());
        let mut request = Request::new(Bytes::new());
        *request.method_mut() = Method::GET;
        *request.uri_mut() = self.address.clone();
        *request.headers_mut() = headers;
        Ok(Asking {
            request,
            copied: Arc::clone(&self.copied),
            timeout: self.timeout,
            transport: Arc::clone(&self.transport),
            service: Arc::clone(&self.service),
        })
    }

    /// Returns true if the request comes from this policy, ignoring parameters of the member.
    fn has_asked(&self, received: &HeaderMap) -> bool {
        let lines = received.get_all(CDN_LOOP).iter();
        lines
            .flat_map(|line| line.as_bytes().split(|byte| *byte == b','))
            .filter_map(|member| member.split(|byte| *byte == b';').next())
            .any(|id| id.trim_ascii() == self.member.as_bytes())
    }
}

/// Returns a random member of `CDN-Loop`.
fn member() -> HeaderValue {
    let number = RandomState::new().hash_one(());
    HeaderValue::try_from(format!("policy-{number:016x}")).expect("hexadecimal digits are text")
}

/// The headers of a request, without those that cannot be sent.
fn received(head: &impl Head) -> HeaderMap {
    let mut headers = HeaderMap::new();
    head.each_header(&mut |name, value| {
        let name = HeaderName::from_bytes(name.as_bytes());
        if let (Ok(name), Ok(value)) = (name, HeaderValue::from_bytes(value)) {
            // The map holds 32,768 fields, more than a head may have.
            let _ = headers.try_append(name, value);
        }
    });
    headers
}

impl Asking {
    /// Waits for the decision.
    ///
    /// Cancel safe.
    pub(super) async fn wait(self) -> Judged {
        let Self {
            request,
            copied,
            timeout,
            transport,
            service,
        } = self;
        let error = match tokio::time::timeout(timeout, send(&*transport, &request)).await {
            Ok(Ok(response)) if response.status().is_success() => {
                service.answered();
                return admitted(&response, &copied);
            }
            Ok(Ok(response)) if is_for_client(response.status()) => {
                service.answered();
                return Judged::Unauthenticated(answered(response));
            }
            Ok(Ok(response)) if response.status() == StatusCode::LOOP_DETECTED => {
                "the status 508: the address may lead back to a route with this policy".to_owned()
            }
            Ok(Ok(response)) => format!("the status {}", response.status().as_u16()),
            Ok(Err(error)) => with_causes(&error),
            Err(_) => format!("no response within {timeout:?}"),
        };
        // A service that fails, lies or is away lets no request pass.
        service.failed(&error);
        Judged::Unavailable(unavailable("Authorization is not available."))
    }
}

/// Sends the request. Once more if a kept connection was just closed by the service: the request changes nothing.
async fn send(
    transport: &dyn Transport,
    request: &Request<Bytes>,
) -> Result<Response<Bytes>, TransportError> {
    match transport.send(request.clone(), LONGEST_BODY).await {
        Err(error) if error.kind() == TransportErrorKind::Interrupted => {
            transport.send(request.clone(), LONGEST_BODY).await
        }
        sent => sent,
    }
}

fn is_for_client(status: StatusCode) -> bool {
    status.is_redirection() || status.is_client_error()
}

/// The headers that the destination gets, and the claims of the same names.
fn admitted(response: &Response<Bytes>, copied: &[HeaderName]) -> Judged {
    let mut claims = Claims::new();
    let mut headers = Vec::new();
    for name in copied {
        for value in response.headers().get_all(name) {
            headers.push((name.clone(), value.clone()));
            if let Ok(text) = value.to_str() {
                claims
                    .entry(name.as_str().to_owned())
                    .or_insert_with(|| text.to_owned());
            }
        }
    }
    Judged::Told(Arc::new(claims), headers)
}

/// The response of the service for the client.
fn answered(response: Response<Bytes>) -> Answer {
    let (parts, body) = response.into_parts();
    let mut answer = Answer::new(parts.status);
    let is_named = |name: &HeaderName| named_by_connection(&parts.headers, name);
    for (name, value) in &parts.headers {
        if !is_of_connection(name) && !is_named(name) {
            answer.push_named(name.clone(), value.clone());
        }
    }
    answer.with_body(body)
}

fn is_of_connection(name: &HeaderName) -> bool {
    OF_CONNECTION.contains(name) || *name == KEEP_ALIVE || *name == PROXY_CONNECTION
}

/// Returns true if `Connection` names the header (RFC 9110 section 7.6.1).
fn named_by_connection(headers: &HeaderMap, name: &HeaderName) -> bool {
    let lines = headers.get_all(CONNECTION).iter();
    lines
        .flat_map(|line| line.as_bytes().split(|byte| *byte == b','))
        .any(|option| {
            option
                .trim_ascii()
                .eq_ignore_ascii_case(name.as_str().as_bytes())
        })
}

impl fmt::Debug for ForwardAuth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ForwardAuth")
            .field("timeout", &self.timeout)
            .finish_non_exhaustive()
    }
}
