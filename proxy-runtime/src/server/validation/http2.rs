//! Validation of HTTP/2 requests beyond that of `h2`.

use http::header::{CONTENT_LENGTH, EXPECT, HOST};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method, StatusCode};

use super::path::{self, Path};
use super::senders::remove_classes;
use super::{METHOD_NOT_ALLOWED, RequestRejection, bad, with_path};
use crate::connection::ListenerRules;
use crate::http1::{
    ClassSet, FieldClass, classify, has_underscore, is_authority, is_imitation, is_path_and_query,
    is_plain_path,
};
use crate::server::limits::Limits;

/// Maximum length of a method name. The longest registered one has 17 letters.
const LONGEST_METHOD: usize = 64;

/// Validates `request` and normalises its path, so that it has no dot segments. Removes fields
/// about the origin of the request if the client is not trusted. Returns the classes of its fields.
pub(crate) fn validate_http2(
    request: &mut Parts,
    limits: &Limits,
    rules: ListenerRules,
) -> Result<ClassSet, RequestRejection> {
    let names = FieldNames::of(&request.headers);
    // The order decides about the status of a request with several faults.
    check_size(request, names.classes, limits)?;
    check_method(request)?;
    check_authority(request, names.classes)?;
    if names.classes.contains(FieldClass::ContentLength) {
        check_length(&request.headers)?;
    }
    settle_path(request, rules)?;
    if names.classes.contains(FieldClass::Expect) {
        check_expect(&request.headers)?;
    }
    if request.headers.values().any(is_padded) {
        return Err(bad("a field's value begins or ends with white space"));
    }
    if names.has_look_alike {
        return Err(bad("a field's name imitates one that the proxy sets"));
    }
    let classes = names.classes;
    if classes.contains(FieldClass::XForwarded) && !rules.trusts_senders {
        let removed = ClassSet::EMPTY.with(FieldClass::XForwarded);
        remove_classes(&mut request.headers, removed);
        return Ok(classes.without(FieldClass::XForwarded));
    }
    Ok(classes)
}

fn check_size(request: &Parts, classes: ClassSet, limits: &Limits) -> Result<(), RequestRejection> {
    let method = request.method.as_str().len();
    if method > LONGEST_METHOD {
        return Err(RequestRejection::new(
            StatusCode::NOT_IMPLEMENTED,
            "the method is not known",
        ));
    }
    let path = request.uri.path_and_query();
    let path = path.map_or(0, |path| path.as_str().len());
    if method + path > limits.request_line {
        return Err(RequestRejection::new(
            StatusCode::URI_TOO_LONG,
            "the request's target is too long",
        ));
    }
    // Counted as in HTTP/1.1, where the authority is a field, too.
    let authority = request.uri.authority();
    let authority = authority.filter(|_| !classes.contains(FieldClass::Host));
    if request.headers.len() + usize::from(authority.is_some()) > limits.header_fields {
        return Err(RequestRejection::new(
            StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
            "the request has too many header fields",
        ));
    }
    let of_field = |name: usize, value: usize| name + ": \r\n".len() + value;
    let host = authority.map_or(0, |authority| {
        of_field(HOST.as_str().len(), authority.as_str().len())
    });
    let fields = request.headers.iter();
    let fields = fields.map(|(name, value)| of_field(name.as_str().len(), value.len()));
    // As the head would be in HTTP/1.1.
    let line = method + path + "  HTTP/1.1\r\n\r\n".len();
    if line + host + fields.sum::<usize>() > limits.header_bytes {
        return Err(RequestRejection::new(
            StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
            "the request's head is too large",
        ));
    }
    Ok(())
}

/// Bytes that HTTP/2 counts for each field besides its text (RFC 9113 section 6.5.2).
const OF_A_FIELD: usize = 32;

/// Returns the limit for `h2`, which counts more than [`check_size`] and resets streams without a line in the log.
pub(crate) fn header_list_limit(limits: &Limits) -> u32 {
    // Four pseudo-header fields.
    let fields = limits.header_fields.saturating_add(4);
    let names = ":method:scheme:authority:path".len() + "https".len();
    let most = limits.header_bytes.saturating_add(names);
    let most = most.saturating_add(fields.saturating_mul(OF_A_FIELD));
    u32::try_from(most).unwrap_or(u32::MAX)
}

/// Rejects `CONNECT` and `TRACE`. A reverse proxy is no tunnel to anywhere (RFC 9110 section
/// 9.3.6), and TRACE would show a script cookies it must not see (section 9.3.8). Extended CONNECT
/// (RFC 8441) names a protocol and is allowed.
fn check_method(request: &Parts) -> Result<(), RequestRejection> {
    let is_allowed = match request.method {
        Method::CONNECT => request.extensions.get::<h2::ext::Protocol>().is_some(),
        Method::TRACE => false,
        _ => true,
    };
    if !is_allowed {
        return Err(METHOD_NOT_ALLOWED);
    }
    Ok(())
}

/// Validates the host of an HTTP/2 request (RFC 9113 section 8.3.1). `:authority` and `Host` may
/// both be present if they agree.
fn check_authority(request: &Parts, classes: ClassSet) -> Result<(), RequestRejection> {
    let host = match classes.contains(FieldClass::Host) {
        true => only_host(&request.headers)?,
        false => None,
    };
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
    if !is_authority(named) {
        return Err(bad("the request's :authority is not a host"));
    }
    check_target(request)
}

fn only_host(headers: &HeaderMap) -> Result<Option<&HeaderValue>, RequestRejection> {
    let mut hosts = headers.get_all(HOST).iter();
    let host = hosts.next();
    match hosts.next() {
        None => Ok(host),
        Some(_) => Err(bad("the request has more than one Host field")),
    }
}

/// Rejects two lengths, even if they agree, as in HTTP/1.1.
fn check_length(headers: &HeaderMap) -> Result<(), RequestRejection> {
    match headers.get_all(CONTENT_LENGTH).iter().nth(1) {
        None => Ok(()),
        Some(_) => Err(bad("the request has more than one Content-Length field")),
    }
}

/// Accepts a path, or `*` for OPTIONS (RFC 9112 section 3.2.4).
fn check_target(request: &Parts) -> Result<(), RequestRejection> {
    let path = request.uri.path();
    if path == "*" && request.method == Method::OPTIONS {
        return Ok(());
    }
    let query = request.uri.query().map(str::as_bytes);
    if path.starts_with('/') && is_path_and_query(path.as_bytes(), query) {
        return Ok(());
    }
    Err(bad("the request's target is not a path"))
}

fn check_scheme(scheme: &str) -> Result<(), RequestRejection> {
    match scheme {
        "http" | "https" => Ok(()),
        _ => Err(bad("the target's scheme is neither http nor https")),
    }
}

fn settle_path(request: &mut Parts, rules: ListenerRules) -> Result<(), RequestRejection> {
    // A plain path has one reading; only strict rules ask for more.
    if is_plain_path(request.uri.path().as_bytes()) && !rules.strict_paths {
        return Ok(());
    }
    let normal = match path::normalize(request.uri.path(), rules.strict_paths) {
        Path::AsSent => return Ok(()),
        Path::Rejected(reason) => return Err(bad(reason)),
        Path::Without(normal) => normal,
    };
    request.uri = with_path(std::mem::take(&mut request.uri), normal)?;
    Ok(())
}

/// Accepts only `100-continue`, the only defined expectation (RFC 9110 section 10.1.1).
fn check_expect(headers: &HeaderMap) -> Result<(), RequestRejection> {
    let is_known = headers
        .get_all(EXPECT)
        .iter()
        .all(|expectation| expectation.as_bytes().eq_ignore_ascii_case(b"100-continue"));
    if is_known {
        Ok(())
    } else {
        Err(RequestRejection::new(
            StatusCode::EXPECTATION_FAILED,
            "the expectation is not known",
        ))
    }
}

/// True if a value has outer white space (RFC 9113 section 8.2.1). A destination that speaks
/// HTTP/1.1 would trim it, and read another value than routes and filters did.
fn is_padded(value: &HeaderValue) -> bool {
    let is_space = |byte: Option<&u8>| matches!(byte, Some(b' ' | b'\t'));
    let value = value.as_bytes();
    is_space(value.first()) || is_space(value.last())
}

/// Facts about field names, collected in one pass.
#[derive(Clone, Copy, Debug)]
struct FieldNames {
    classes: ClassSet,
    /// True if a name imitates a field of the proxy. Many programs map `-` to `_` to make a
    /// variable of a field name (RFC 3875 section 4.1.18): a client could send `X_Forwarded_For`
    /// where the proxy controls `X-Forwarded-For`. Such names have no legitimate use.
    has_look_alike: bool,
}

impl FieldNames {
    fn of(headers: &HeaderMap) -> Self {
        let mut names = Self {
            classes: ClassSet::EMPTY,
            has_look_alike: false,
        };
        for name in headers.keys() {
            let name = name.as_str().as_bytes();
            let class = classify(name);
            names.classes = names.classes.with(class);
            // The other classes are of exact names, none of which has an underscore.
            let may_be_any = matches!(class, FieldClass::Other | FieldClass::XForwarded);
            if may_be_any && has_underscore(name) {
                names.classes = names.classes.with(FieldClass::Underscored);
                names.has_look_alike |= is_imitation(name);
            }
        }
        names
    }
}

#[cfg(test)]
mod tests;
