//! Request validation and normalisation before a service sees a request.
//!
//! Requests that other programs could interpret differently are rejected here. For HTTP/1 the
//! parser does most of it ([`crate::http1`]); for HTTP/2 `h2` leaves much open ([`validate_http2`]).

#[cfg(feature = "http2")]
mod http2;
mod path;
mod senders;

use http::uri::PathAndQuery;
use http::{StatusCode, Uri};

#[cfg(feature = "http2")]
pub(crate) use self::http2::{header_list_limit, validate_http2};
use self::path::Path;
pub(crate) use self::senders::resolve_client;
#[cfg(feature = "http2")]
pub(crate) use self::senders::resolve_map_client;
use super::limits::Limits;
use crate::connection::ListenerRules;
use crate::error::Allowance;
use crate::http1::{Framing, Method as RawMethod, RawRequest};

/// The methods that a 405 lists (RFC 9110 section 15.5.6).
pub(crate) const ALLOWED_METHODS: &str = "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS";

/// The reason of a rejection. The text is fixed: it contains nothing of the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RequestRejection {
    pub(crate) status: StatusCode,
    pub(crate) reason: &'static str,
}

impl RequestRejection {
    pub(crate) const fn new(status: StatusCode, reason: &'static str) -> Self {
        Self { status, reason }
    }
}

const fn bad(reason: &'static str) -> RequestRejection {
    RequestRejection::new(StatusCode::BAD_REQUEST, reason)
}

/// A valid HTTP/1 request.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ValidRequest {
    /// The path stays as sent.
    AsSent,
    /// The path is replaced by this one, without dot segments.
    WithPath(String),
}

/// Validates a parsed HTTP/1 request beyond the rules of the parser.
pub(crate) fn validate_http1(
    buffer: &[u8],
    request: &RawRequest,
    limits: &Limits,
    rules: ListenerRules,
) -> Result<ValidRequest, RequestRejection> {
    if matches!(request.method(), RawMethod::Connect | RawMethod::Trace) {
        return Err(METHOD_NOT_ALLOWED);
    }
    if let Framing::Length(length) = request.framing() {
        validate_length(Some(length), limits)?;
    }
    // The parser has found that the path has one reading.
    if request.has_plain_path() && !rules.strict_paths {
        return Ok(ValidRequest::AsSent);
    }
    let path = str::from_utf8(request.path().get(buffer));
    match path::normalize(path.map_err(|_| UNREADABLE_TARGET)?, rules.strict_paths) {
        Path::AsSent => Ok(ValidRequest::AsSent),
        Path::Rejected(reason) => Err(bad(reason)),
        Path::Without(path) => Ok(ValidRequest::WithPath(path)),
    }
}

/// Replaces the path of `target`.
pub(crate) fn with_path(target: Uri, path: String) -> Result<Uri, RequestRejection> {
    let whole = match target.query() {
        Some(query) => format!("{path}?{query}"),
        None => path,
    };
    let mut parts = target.into_parts();
    parts.path_and_query = PathAndQuery::try_from(whole).ok();
    Uri::from_parts(parts).map_err(|_| UNREADABLE_TARGET)
}

const METHOD_NOT_ALLOWED: RequestRejection =
    RequestRejection::new(StatusCode::METHOD_NOT_ALLOWED, "the method is not allowed");

const UNREADABLE_TARGET: RequestRejection = bad("the request's target cannot be read");

/// Checks the declared length of a body.
pub(crate) fn validate_length(
    length: Option<u64>,
    limits: &Limits,
) -> Result<(), RequestRejection> {
    let valid = Allowance::new(limits.body_bytes).check(length);
    valid.map_err(|status| RequestRejection::new(status, "the request's body is too large"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http1::{HeadTable, Status, parse_request};

    fn validate(head: &str, limits: &Limits) -> Result<ValidRequest, RequestRejection> {
        validate_by(head, limits, ListenerRules::default())
    }

    fn validate_by(
        head: &str,
        limits: &Limits,
        rules: ListenerRules,
    ) -> Result<ValidRequest, RequestRejection> {
        let mut table = HeadTable::new();
        let parsed = parse_request(head.as_bytes(), &limits.head(), &mut table);
        let Ok(Status::Complete(request)) = parsed else {
            panic!("{parsed:?} of {head}");
        };
        validate_http1(head.as_bytes(), &request, limits, rules)
    }

    fn validate_line(line: &str) -> Result<ValidRequest, u16> {
        let head = format!("{line} HTTP/1.1\r\nHost: t.example\r\n\r\n");
        validate(&head, &Limits::default()).map_err(|rejection| rejection.status.as_u16())
    }

    #[test]
    fn methods_that_are_not_for_a_gateway_are_rejected() {
        assert_eq!(validate_line("CONNECT t.example:443"), Err(405));
        assert_eq!(validate_line("TRACE /a"), Err(405));
        assert_eq!(validate_line("get /a"), Ok(ValidRequest::AsSent));
        assert_eq!(validate_line("OPTIONS *"), Ok(ValidRequest::AsSent));
    }

    #[test]
    fn paths_have_one_reading() {
        let normal = |path: &str| Ok(ValidRequest::WithPath(path.to_owned()));
        for (path, expected) in [
            ("/a", Ok(ValidRequest::AsSent)),
            ("/a.b/%2F", Ok(ValidRequest::AsSent)),
            ("/pub/../adm?x=/../y", normal("/adm")),
            ("/pub/%2e%2E/adm", normal("/adm")),
            ("http://other.example/a/./b", normal("/a/b")),
            ("/pub/..;/adm", Err(400)),
            ("/a%00", Err(400)),
            ("/a%zz", Err(400)),
        ] {
            assert_eq!(validate_line(&format!("GET {path}")), expected, "{path}");
        }
    }

    #[test]
    fn a_listener_may_be_strict_about_paths() {
        let rules = ListenerRules {
            strict_paths: true,
            ..ListenerRules::default()
        };
        for (path, expected) in [
            ("/a/b", Ok(ValidRequest::AsSent)),
            ("//adm", Ok(ValidRequest::WithPath("/adm".to_owned()))),
            ("/adm;x", Err(400)),
            ("/adm?a;b//%2f", Ok(ValidRequest::AsSent)),
            ("/adm%2fx", Err(400)),
        ] {
            let head = format!("GET {path} HTTP/1.1\r\nHost: t\r\n\r\n");
            let valid = validate_by(&head, &Limits::default(), rules);
            let valid = valid.map_err(|rejection| rejection.status.as_u16());
            assert_eq!(valid, expected, "{path}");
        }
    }

    #[test]
    fn a_path_is_replaced_and_the_query_stays() {
        let replaced = with_path("/a/../b?x=/../y".parse().unwrap(), "/b".to_owned());
        assert_eq!(replaced.unwrap(), "/b?x=/../y");
    }

    #[test]
    fn a_body_has_a_limit() {
        let limits = Limits {
            body_bytes: Some(10),
            ..Limits::default()
        };
        let status = |length: u32| {
            let head = format!("POST /a HTTP/1.1\r\nHost: t\r\nContent-Length: {length}\r\n\r\n");
            validate(&head, &limits).map_err(|rejection| rejection.status.as_u16())
        };
        assert_eq!(status(10), Ok(ValidRequest::AsSent));
        assert_eq!(status(11), Err(413));
    }
}
