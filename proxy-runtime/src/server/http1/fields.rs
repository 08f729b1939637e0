//! Conversion of HTTP/1.1 heads to `http` requests.

use bytes::Bytes;
use http::header::{HOST, HeaderMap, HeaderName, HeaderValue, USER_AGENT};
use http::uri::PathAndQuery;
use http::{Method, Request, StatusCode, Uri, Version};

use crate::connection::ConnectionInfo;
use crate::forward::recycled::{self, Kind};
use crate::http1::{
    Field, FieldClass, HeadTable, Method as RawMethod, RawRequest, Status, TargetForm,
    Version as RawVersion, is_dropped_from_trailers, parse_request,
};
use crate::server::limits::Limits;
use crate::server::validation::{self, RequestRejection, ValidRequest};

/// The rejection of a valid head that `http` types cannot represent. None is known.
const UNREADABLE: RequestRejection =
    RequestRejection::new(StatusCode::BAD_REQUEST, "the request cannot be read");

/// The fields to convert.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ChosenFields {
    All,
    /// `Host` and `User-Agent`.
    Logged,
}

/// Parses and validates a head like the server on a connection of a listener. Returns the request as a service
/// would get it, with the client's information, or the rejection.
pub(crate) fn read_head(
    head: &Bytes,
    limits: &Limits,
    connection: ConnectionInfo,
) -> Result<(Request<()>, ConnectionInfo), RequestRejection> {
    let mut table = HeadTable::new();
    let parsed = parse_request(head, &limits.head(), &mut table);
    let parsed = parsed
        .map_err(|rejection| RequestRejection::new(rejection.status(), rejection.reason()))?;
    let Status::Complete(request) = parsed else {
        return Err(UNREADABLE);
    };
    let reported = validation::resolve_client(head, &mut table, &connection);
    let valid = validation::validate_http1(head, &request, limits, connection.rules)?;
    let mut made = Request::new(());
    read_valid(head, &request, &table, valid, &mut made)?;
    Ok((made, reported.map_or(connection, |reported| *reported)))
}

/// Fills `made` from a validated head, with all of its fields.
pub(super) fn read_valid<B>(
    head: &Bytes,
    request: &RawRequest,
    table: &HeadTable,
    valid: ValidRequest,
    made: &mut Request<B>,
) -> Result<(), RequestRejection> {
    read_request(head, request, table, ChosenFields::All, made)?;
    if let ValidRequest::WithPath(path) = valid {
        *made.uri_mut() = validation::with_path(std::mem::take(made.uri_mut()), path)?;
    }
    Ok(())
}

/// Fills `made` from the head as sent, with the fields that are `chosen`. An absolute target
/// becomes a path, and its authority becomes `Host`.
///
/// Values share the memory of `head`.
pub(super) fn read_request<B>(
    head: &Bytes,
    request: &RawRequest,
    table: &HeadTable,
    chosen: ChosenFields,
    made: &mut Request<B>,
) -> Result<(), RequestRejection> {
    *made.method_mut() = read_method(head, request).ok_or(UNREADABLE)?;
    *made.version_mut() = match request.version() {
        RawVersion::Http10 => Version::HTTP_10,
        RawVersion::Http11 => Version::HTTP_11,
    };
    *made.uri_mut() = read_target(head, request).ok_or(UNREADABLE)?;
    // `resolve_client` has marked the fields that this client must not set.
    let is_trusted = |field: &&Field| field.class() != FieldClass::Distrusted;
    let fields = table.fields().iter().filter(is_trusted);
    let read = match chosen {
        ChosenFields::All => {
            // Space for fields that a layer adds.
            let room = (table.fields().len(), 2);
            *made.extensions_mut() = recycled::extensions(Kind::Request);
            recycled::fields(Kind::Request, head, fields, room)
        }
        ChosenFields::Logged => {
            let is_logged = |field: &&Field| {
                let name = field.name().get(head);
                field.class() == FieldClass::Host
                    || name.eq_ignore_ascii_case(USER_AGENT.as_str().as_bytes())
            };
            recycled::fields(Kind::Logged, head, fields.filter(is_logged), (2, 0))
        }
    };
    *made.headers_mut() = read.ok_or(UNREADABLE)?;
    let is_overruled = request.target_form() != TargetForm::Origin
        && !request.authority().is_empty()
        && table
            .first(FieldClass::Host)
            .is_none_or(|host| host.value() != request.authority());
    if is_overruled {
        // The authority of an absolute target overrides `Host` (RFC 9112 section 3.2.2).
        let span = request.authority();
        let host = HeaderValue::from_maybe_shared(slice(head, span)).map_err(|_| UNREADABLE)?;
        made.headers_mut().insert(HOST, host);
    }
    Ok(())
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

/// The path and query of an absolute target.
fn read_path(head: &Bytes, request: &RawRequest) -> Result<PathAndQuery, http::uri::InvalidUri> {
    let path = request.path();
    match request.query() {
        _ if path.is_empty() => {
            let query = request.query().map(|query| query.get(head));
            let query = query.map(String::from_utf8_lossy).unwrap_or_default();
            // An empty query keeps its `?`.
            let mark = if request.query().is_some() { "?" } else { "" };
            PathAndQuery::try_from(format!("/{mark}{query}"))
        }
        // Path and query are adjacent: one slice holds both.
        Some(query) => {
            let whole = path.start() as usize..query.end() as usize;
            PathAndQuery::from_maybe_shared(head.slice(whole))
        }
        None => PathAndQuery::from_maybe_shared(slice(head, path)),
    }
}

fn slice(head: &Bytes, span: crate::http1::Span) -> Bytes {
    head.slice(span.start() as usize..span.end() as usize)
}

/// Parses trailers, without fields that must not be merged into the head (RFC 9110 section 6.5.1).
pub(crate) fn read_trailers(section: &[u8], table: &HeadTable) -> HeaderMap {
    let mut trailers = HeaderMap::new();
    for field in table.fields() {
        let name = field.name().get(section);
        if is_dropped_from_trailers(name, field.class()) {
            continue;
        }
        let name = HeaderName::from_bytes(name);
        let value = HeaderValue::from_bytes(field.value().get(section));
        // Both are valid, since the section was parsed.
        if let (Ok(name), Ok(value)) = (name, value) {
            trailers.append(name, value);
        }
    }
    trailers
}
