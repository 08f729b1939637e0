//! What is refused, or brought into one form, before a service sees it.
//!
//! The HTTP engine reads messages; that does not make it an edge. What it leaves open, and programs behind us may read
//! in different ways, is decided here: which host a request is for, which form its target may have, how its body is
//! framed.

mod authority;
mod path;
#[cfg(test)]
mod tests;

use http::header::{
    CONNECTION, CONTENT_LENGTH, EXPECT, HOST, HeaderName, HeaderValue, TRANSFER_ENCODING, UPGRADE,
};
use http::request::Parts;
use http::uri::PathAndQuery;
use http::{HeaderMap, Method, StatusCode, Uri, Version};

use self::path::Path;
use super::limits::Limits;

/// Methods that a 405 offers (RFC 9110 section 15.5.6 asks for the list).
pub(crate) const ALLOWED_METHODS: &str = "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS";

/// The longest method name that is passed on. The longest registered one has 17 letters.
const LONGEST_METHOD: usize = 64;

/// Why a request was refused. The text is fixed: nothing of the request is reflected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) status: StatusCode,
    pub(crate) reason: &'static str,
}

impl Refusal {
    pub(crate) const fn new(status: StatusCode, reason: &'static str) -> Self {
        Self { status, reason }
    }
}

const fn bad(reason: &'static str) -> Refusal {
    Refusal::new(StatusCode::BAD_REQUEST, reason)
}

/// Checks `request`, and brings its target and its host into the form that the service relies on: a path without dot
/// segments, and on HTTP/1 the origin form with the authority in `Host`.
pub(crate) fn admit(request: &mut Parts, limits: &Limits) -> Result<(), Refusal> {
    check_size(request, limits)?;
    check_method(request)?;
    if request.version < Version::HTTP_2 {
        check_framing(&request.headers)?;
        settle_authority_1(request)?;
    } else {
        settle_authority_2(request)?;
    }
    settle_path(request)?;
    check_expect(&request.headers)?;
    check_look_alikes(&request.headers)
}

/// Checks the length that a request's head gives to its body.
pub(crate) fn admit_length(length: Option<u64>, limits: &Limits) -> Result<(), Refusal> {
    match (length, limits.body_bytes) {
        (Some(length), Some(limit)) if length > limit => Err(Refusal::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            "the request's body is too large",
        )),
        _ => Ok(()),
    }
}

fn check_size(request: &Parts, limits: &Limits) -> Result<(), Refusal> {
    let method = request.method.as_str().len();
    if method > LONGEST_METHOD {
        return Err(Refusal::new(
            StatusCode::NOT_IMPLEMENTED,
            "the method is not known",
        ));
    }
    let target = &request.uri;
    let authority = target
        .authority()
        .map_or(0, |authority| authority.as_str().len());
    let path = target
        .path_and_query()
        .map_or(0, |path| path.as_str().len());
    if method + authority + path > limits.request_line {
        return Err(Refusal::new(
            StatusCode::URI_TOO_LONG,
            "the request's target is too long",
        ));
    }
    // The engine counts fields on HTTP/1 only.
    if request.headers.len() > limits.header_fields {
        return Err(Refusal::new(
            StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
            "the request has too many header fields",
        ));
    }
    Ok(())
}

/// A reverse proxy is no tunnel to anywhere (RFC 9110 section 9.3.6), and TRACE would show a page's script the cookies
/// it must not see (section 9.3.8). Extended CONNECT (RFC 8441) names a protocol and is another matter.
fn check_method(request: &Parts) -> Result<(), Refusal> {
    let is_allowed = match request.method {
        #[cfg(feature = "http2")]
        Method::CONNECT => request.extensions.get::<hyper::ext::Protocol>().is_some(),
        #[cfg(not(feature = "http2"))]
        Method::CONNECT => false,
        Method::TRACE => false,
        _ => true,
    };
    if !is_allowed {
        return Err(Refusal::new(
            StatusCode::METHOD_NOT_ALLOWED,
            "the method is not allowed",
        ));
    }
    Ok(())
}

/// RFC 9112 section 6.1. The engine has made sure that `chunked` comes last; it leaves open what comes before it.
fn check_framing(headers: &HeaderMap) -> Result<(), Refusal> {
    let mut codings = headers.get_all(TRANSFER_ENCODING).iter();
    let Some(coding) = codings.next() else {
        return check_upgrade(headers);
    };
    if codings.next().is_some() {
        return Err(bad("the request has more than one Transfer-Encoding field"));
    }
    let coding = coding.as_bytes();
    if coding.eq_ignore_ascii_case(b"chunked") {
        return check_upgrade(headers);
    }
    let mut names = coding.split(|&byte| byte == b',').map(<[u8]>::trim_ascii);
    if names
        .any(|name| !name.eq_ignore_ascii_case(b"chunked") && !name.is_empty() && is_token(name))
    {
        return Err(Refusal::new(
            StatusCode::NOT_IMPLEMENTED,
            "the transfer coding is not known",
        ));
    }
    Err(bad("the request's Transfer-Encoding cannot be read"))
}

fn is_token(name: &[u8]) -> bool {
    name.iter()
        .all(|&byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte))
}

/// A WebSocket opens with a GET that has no body (RFC 6455 section 4.1). Bytes that one program takes for the body, and
/// another for the first ones of the tunnel, smuggle requests.
fn check_upgrade(headers: &HeaderMap) -> Result<(), Refusal> {
    let Some(protocol) = headers.get(UPGRADE) else {
        return Ok(());
    };
    let has_body = headers.contains_key(TRANSFER_ENCODING)
        || headers
            .get(CONTENT_LENGTH)
            .is_some_and(|length| length != "0");
    if has_body
        && protocol.as_bytes().eq_ignore_ascii_case(b"websocket")
        && headers.contains_key(CONNECTION)
    {
        return Err(bad("the request asks for a WebSocket and has a body"));
    }
    Ok(())
}

/// Which host an HTTP/1 request is for: RFC 9112 section 3.2. Afterwards it is in `Host` alone.
fn settle_authority_1(request: &mut Parts) -> Result<(), Refusal> {
    let mut hosts = request.headers.get_all(HOST).iter();
    let host = hosts.next();
    if hosts.next().is_some() {
        return Err(bad("the request has more than one Host field"));
    }
    match host {
        None if request.version == Version::HTTP_11 => {
            return Err(bad("the request has no Host field"));
        }
        None => {}
        Some(host) if !authority::is_valid(host.as_bytes()) => {
            return Err(bad("the request's Host field is not a host"));
        }
        Some(_) => {}
    }
    match (request.uri.scheme(), request.uri.authority()) {
        (None, None) => check_target(request),
        (Some(scheme), Some(authority)) => {
            check_scheme(scheme.as_str())?;
            let host = host_value(authority.as_str())?;
            request.headers.insert(HOST, host);
            let path = request.uri.path_and_query().cloned();
            request.uri = Uri::from(path.unwrap_or_else(|| PathAndQuery::from_static("/")));
            Ok(())
        }
        // The authority form is for CONNECT.
        _ => Err(bad("the request's target is not a path")),
    }
}

/// Which host an HTTP/2 request is for: RFC 9113 section 8.3.1. `:authority` and `Host` may both be there, if they
/// agree.
fn settle_authority_2(request: &Parts) -> Result<(), Refusal> {
    let mut hosts = request.headers.get_all(HOST).iter();
    let host = hosts.next();
    if hosts.next().is_some() {
        return Err(bad("the request has more than one Host field"));
    }
    if let Some(scheme) = request.uri.scheme() {
        check_scheme(scheme.as_str())?;
    }
    let named = match (request.uri.authority(), host) {
        (Some(authority), Some(host))
            if !authority
                .as_str()
                .as_bytes()
                .eq_ignore_ascii_case(host.as_bytes()) =>
        {
            return Err(bad(
                "the request's :authority and its Host field do not agree",
            ));
        }
        (Some(authority), _) => authority.as_str().as_bytes(),
        (None, Some(host)) => host.as_bytes(),
        (None, None) => return Err(bad("the request has no :authority")),
    };
    if !authority::is_valid(named) {
        return Err(bad("the request's :authority is not a host"));
    }
    check_target(request)
}

/// A path, or for OPTIONS the whole server (RFC 9112 section 3.2.4).
fn check_target(request: &Parts) -> Result<(), Refusal> {
    let path = request.uri.path();
    if path.starts_with('/') || (path == "*" && request.method == Method::OPTIONS) {
        return Ok(());
    }
    Err(bad("the request's target is not a path"))
}

fn check_scheme(scheme: &str) -> Result<(), Refusal> {
    match scheme {
        "http" | "https" => Ok(()),
        _ => Err(bad("the target's scheme is neither http nor https")),
    }
}

fn host_value(authority: &str) -> Result<HeaderValue, Refusal> {
    if !authority::is_valid(authority.as_bytes()) {
        return Err(bad("the target's authority is not a host"));
    }
    HeaderValue::from_str(authority).map_err(|_| bad("the target's authority is not a host"))
}

fn settle_path(request: &mut Parts) -> Result<(), Refusal> {
    let normal = match path::normalize(request.uri.path()) {
        Path::AsSent => return Ok(()),
        Path::Refused(reason) => return Err(bad(reason)),
        Path::Without(normal) => normal,
    };
    let target = match request.uri.query() {
        Some(query) => format!("{normal}?{query}"),
        None => normal,
    };
    let mut parts = std::mem::take(&mut request.uri).into_parts();
    parts.path_and_query = PathAndQuery::try_from(target).ok();
    request.uri = Uri::from_parts(parts).map_err(|_| bad("the request's target cannot be read"))?;
    Ok(())
}

/// RFC 9110 section 10.1.1: the only expectation there is.
fn check_expect(headers: &HeaderMap) -> Result<(), Refusal> {
    let is_known = headers
        .get_all(EXPECT)
        .iter()
        .all(|expectation| expectation.as_bytes().eq_ignore_ascii_case(b"100-continue"));
    if is_known {
        Ok(())
    } else {
        Err(Refusal::new(
            StatusCode::EXPECTATION_FAILED,
            "the expectation is not known",
        ))
    }
}

/// Many programs behind us turn `-` into `_` to make a variable of a field's name (RFC 3875 section 4.1.18), so that a
/// client could write `X_Forwarded_For` where we take care that `X-Forwarded-For` is ours. Such names have no honest
/// use.
fn check_look_alikes(headers: &HeaderMap) -> Result<(), Refusal> {
    for name in headers.keys() {
        if name.as_str().contains('_') && is_look_alike(name) {
            return Err(bad("a field's name imitates one that the proxy sets"));
        }
    }
    Ok(())
}

fn is_look_alike(name: &HeaderName) -> bool {
    const IMITATED: [&str; 9] = [
        "connection",
        "content-length",
        "forwarded",
        "host",
        "proxy-connection",
        "te",
        "transfer-encoding",
        "x-client-cert",
        "x-real-ip",
    ];
    let plain = name.as_str().replace('_', "-");
    plain.starts_with("x-forwarded-") || IMITATED.contains(&plain.as_str())
}
