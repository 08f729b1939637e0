//! Heads of HTTP/1.1 as `http` requests.

use bytes::Bytes;
use http::header::{HOST, HeaderMap, HeaderName, HeaderValue};
use http::request::Parts;
use http::uri::PathAndQuery;
use http::{Method, Request, StatusCode, Uri, Version};

use crate::forward::headers::received_name;
use crate::forward::spare;
use crate::http1::{
    ClassSet, Field, FieldClass, HeadTable, Method as RawMethod, RawRequest, TargetForm,
    Version as RawVersion,
};
use crate::server::edge::Refusal;

/// What cannot be said in `http` types, though it could be read. There should be nothing of the kind.
const UNREADABLE: Refusal = Refusal::new(StatusCode::BAD_REQUEST, "the request cannot be read");

/// The head as the client sent it, but that an absolute target has become a path, and its authority `Host`; of its fields
/// those that are `chosen`, and `Host`.
///
/// Values share the memory of `head`.
pub(super) fn read_request(
    head: &Bytes,
    request: &RawRequest,
    table: &HeadTable,
    chosen: impl Fn(&[u8]) -> bool,
) -> Result<Parts, Refusal> {
    let (mut parts, ()) = Request::new(()).into_parts();
    parts.method = read_method(head, request).ok_or(UNREADABLE)?;
    parts.version = match request.version() {
        RawVersion::Http10 => Version::HTTP_10,
        RawVersion::Http11 => Version::HTTP_11,
    };
    parts.uri = read_target(head, request).ok_or(UNREADABLE)?;
    // A layer may add one or two.
    parts.headers = spare::fields(table.fields().len() + 2);
    parts.extensions = spare::extensions();
    for field in table.fields() {
        if field.class() != FieldClass::Host && !chosen(field.name().get(head)) {
            continue;
        }
        let (name, value) = read_field(head, field).ok_or(UNREADABLE)?;
        parts.headers.append(name, value);
    }
    let is_overruled = request.target_form() != TargetForm::Origin
        && !request.authority().is_empty()
        && table
            .first(FieldClass::Host)
            .is_none_or(|host| host.value() != request.authority());
    if is_overruled {
        // RFC 9112 section 3.2.2.
        let span = request.authority();
        let host = HeaderValue::from_maybe_shared(slice(head, span)).map_err(|_| UNREADABLE)?;
        parts.headers.insert(HOST, host);
    }
    Ok(parts)
}

fn read_method(head: &Bytes, request: &RawRequest) -> Option<Method> {
    Some(match request.method() {
        RawMethod::Get => Method::GET,
        RawMethod::Head => Method::HEAD,
        RawMethod::Post => Method::POST,
        RawMethod::Put => Method::PUT,
        RawMethod::Patch => Method::PATCH,
        RawMethod::Delete => Method::DELETE,
        RawMethod::Options => Method::OPTIONS,
        RawMethod::Connect => Method::CONNECT,
        RawMethod::Trace => Method::TRACE,
        RawMethod::Other => Method::from_bytes(request.method_span().get(head)).ok()?,
    })
}

fn read_target(head: &Bytes, request: &RawRequest) -> Option<Uri> {
    let target = match request.target_form() {
        TargetForm::Origin => PathAndQuery::from_maybe_shared(slice(head, request.target())),
        TargetForm::Asterisk => Ok(PathAndQuery::from_static("*")),
        TargetForm::Authority => return Uri::from_maybe_shared(slice(head, request.target())).ok(),
        TargetForm::Absolute => read_path(head, request),
    };
    target.ok().map(Uri::from)
}

/// Path and query of an absolute target.
fn read_path(head: &Bytes, request: &RawRequest) -> Result<PathAndQuery, http::uri::InvalidUri> {
    let path = request.path();
    match request.query() {
        _ if path.is_empty() => {
            let query = request.query().map(|query| query.get(head));
            let query = query.map(String::from_utf8_lossy).unwrap_or_default();
            let mark = if request.query().is_some() { "?" } else { "" };
            PathAndQuery::try_from(format!("/{mark}{query}"))
        }
        Some(query) => {
            let whole = path.start() as usize..query.end() as usize;
            PathAndQuery::from_maybe_shared(head.slice(whole))
        }
        None => PathAndQuery::from_maybe_shared(slice(head, path)),
    }
}

fn read_field(head: &Bytes, field: &Field) -> Option<(HeaderName, HeaderValue)> {
    let name = received_name(field.class(), field.name().get(head))?;
    let value = HeaderValue::from_maybe_shared(slice(head, field.value())).ok()?;
    Some((name, value))
}

fn slice(head: &Bytes, span: crate::http1::Span) -> Bytes {
    head.slice(span.start() as usize..span.end() as usize)
}

/// Trailers, but for those that are no business of who gets the body (RFC 9110 section 6.5.1).
pub(super) fn read_trailers(section: &[u8], table: &HeadTable) -> HeaderMap {
    let mut trailers = HeaderMap::new();
    for field in table.fields() {
        if ClassSet::DROPPED_FROM_TRAILERS.contains(field.class()) {
            continue;
        }
        let name = HeaderName::from_bytes(field.name().get(section));
        let value = HeaderValue::from_bytes(field.value().get(section));
        if let (Ok(name), Ok(value)) = (name, value) {
            trailers.append(name, value);
        }
    }
    trailers
}
