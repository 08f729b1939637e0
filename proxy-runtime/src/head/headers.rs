//! The header fields that may be forwarded.

use http::header::{
    ACCEPT, ACCEPT_ENCODING, ACCEPT_LANGUAGE, CACHE_CONTROL, DATE, SERVER, USER_AGENT, VARY,
};
use http::header::{
    AUTHORIZATION, CONNECTION, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, COOKIE, FORWARDED,
    HOST, SET_COOKIE, TE, TRAILER, TRANSFER_ENCODING, UPGRADE,
};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};

use crate::http1::{ClassSet, classify, is_dropped_from_trailers};
use crate::http1::{FieldClass, is};

/// The field with the proxies that have forwarded a request.
pub(crate) const CDN_LOOP: HeaderName = HeaderName::from_static("cdn-loop");

/// Fields that are meant for the recipient of the content, so that `Connection` may not name them (RFC 9110 section
/// 7.6.1). Without this, a client could take away what the proxies before this one have added.
const END_TO_END: [HeaderName; 12] = [
    HOST,
    CONTENT_LENGTH,
    CONTENT_TYPE,
    CONTENT_ENCODING,
    AUTHORIZATION,
    COOKIE,
    SET_COOKIE,
    FORWARDED,
    TRAILER,
    CDN_LOOP,
    HeaderName::from_static("x-real-ip"),
    HeaderName::from_static("true-client-ip"),
];

/// Returns the classes of the fields. One pass over all names is cheaper than a few lookups.
#[cfg(feature = "server")]
pub(crate) fn classes(headers: &HeaderMap) -> ClassSet {
    headers.keys().fold(ClassSet::EMPTY, |classes, name| {
        classes.with(classify(name.as_str().as_bytes()))
    })
}

/// The name of a field that was received, and has this class.
pub(crate) fn received_name(class: FieldClass, name: &[u8]) -> Option<HeaderName> {
    Some(match class {
        FieldClass::Host => HOST,
        FieldClass::Connection => CONNECTION,
        FieldClass::ContentLength => CONTENT_LENGTH,
        FieldClass::TransferEncoding => TRANSFER_ENCODING,
        FieldClass::Date => DATE,
        FieldClass::CdnLoop => CDN_LOOP,
        // Made of text, each of these would have memory of its own.
        FieldClass::XForwardedFor => HeaderName::from_static("x-forwarded-for"),
        FieldClass::XForwardedHost => HeaderName::from_static("x-forwarded-host"),
        FieldClass::XForwardedProto => HeaderName::from_static("x-forwarded-proto"),
        _ => match usual_name(name) {
            Some(usual) => usual,
            None => return HeaderName::from_bytes(name).ok(),
        },
    })
}

/// Returns a name that most heads have, found by its length: faster than a look-up among all known names.
fn usual_name(name: &[u8]) -> Option<HeaderName> {
    Some(match name.len() {
        4 if is(name, b"vary") => VARY,
        6 if is(name, b"accept") => ACCEPT,
        6 if is(name, b"server") => SERVER,
        10 if is(name, b"user-agent") => USER_AGENT,
        12 if is(name, b"content-type") => CONTENT_TYPE,
        13 if is(name, b"cache-control") => CACHE_CONTROL,
        15 if is(name, b"accept-encoding") => ACCEPT_ENCODING,
        15 if is(name, b"accept-language") => ACCEPT_LANGUAGE,
        _ => return None,
    })
}

/// Removes the fields that concern one connection only, and those that `Connection` names.
///
/// A message with `Transfer-Encoding` loses its `Content-Length` as well: the former has precedence (RFC 9112 section
/// 6.3), and a recipient that saw both would have to guess.
pub(crate) fn strip_hop_by_hop(headers: &mut HeaderMap) {
    if headers.contains_key(TRANSFER_ENCODING) {
        headers.remove(CONTENT_LENGTH);
    }
    strip_named(headers);
    // Most messages have one at most.
    while let Some(name) = headers.keys().find(|name| is_hop_by_hop(name)).cloned() {
        headers.remove(name);
    }
}

/// Returns whether fields of this name concern one connection only and are never sent on.
fn is_hop_by_hop(name: &HeaderName) -> bool {
    ClassSet::HOP_BY_HOP.contains(classify(name.as_str().as_bytes()))
}

/// Removes the fields that `Connection` names, except fields that always concern one connection, which the caller
/// removes or keeps.
pub(crate) fn strip_named(headers: &mut HeaderMap) {
    if headers.contains_key(CONNECTION) {
        for name in named_by_connection(headers) {
            if !is_hop_by_hop(&name) {
                headers.remove(name);
            }
        }
    }
}

/// Removes the fields that `Connection` names, and all of its options but `upgrade`, so that fields which are set later
/// stay.
pub(crate) fn strip_options(headers: &mut HeaderMap) {
    strip_named(headers);
    if headers.contains_key(CONNECTION) {
        let is_upgrade = has_token(headers, &CONNECTION, "upgrade");
        headers.remove(CONNECTION);
        if is_upgrade {
            headers.insert(CONNECTION, HeaderValue::from_static("upgrade"));
        }
    }
}

/// Removes the fields of the connection, whatever a route configures.
pub(crate) fn strip_framing(headers: &mut HeaderMap) {
    for name in [CONNECTION, UPGRADE, TRANSFER_ENCODING] {
        headers.remove(name);
    }
}

/// The fields that `Connection` names and may name.
fn named_by_connection(headers: &HeaderMap) -> Vec<HeaderName> {
    tokens(headers, &CONNECTION)
        .filter_map(|token| HeaderName::from_bytes(token).ok())
        .filter(|name| !END_TO_END.contains(name) && !name.as_str().starts_with("x-forwarded-"))
        .collect()
}

/// Returns true if `Connection` names the fields of a name, and may name them.
pub(crate) fn is_named_by_connection(headers: &HeaderMap, name: &str) -> bool {
    headers.contains_key(CONNECTION)
        && named_by_connection(headers)
            .iter()
            .any(|named| named.as_str().eq_ignore_ascii_case(name))
}

/// The elements of a comma-separated list, over all lines of a field.
fn tokens<'a>(headers: &'a HeaderMap, name: &HeaderName) -> impl Iterator<Item = &'a [u8]> {
    headers
        .get_all(name)
        .iter()
        .flat_map(|value| value.as_bytes().split(|byte| *byte == b','))
        .map(<[u8]>::trim_ascii)
        .filter(|token| !token.is_empty())
}

/// Returns true if a comma-separated list has an element, ignoring case.
pub(crate) fn has_token(headers: &HeaderMap, name: &HeaderName, token: &str) -> bool {
    tokens(headers, name).any(|element| element.eq_ignore_ascii_case(token.as_bytes()))
}

/// Returns true if the client accepts trailers: `TE: trailers`.
pub(crate) fn accepts_trailers(headers: &HeaderMap) -> bool {
    has_token(headers, &TE, "trailers")
}

/// Removes `Content-Length: 0` where there can be no content (RFC 9110 section 8.6): a server that is strict about it
/// would reject the response.
pub(crate) fn drop_pointless_length(status: StatusCode, headers: &mut HeaderMap) {
    // A 205 has no content either (RFC 9110 section 15.3.6).
    let no_content = status.is_informational()
        || status == StatusCode::NO_CONTENT
        || status == StatusCode::RESET_CONTENT;
    if no_content
        && headers
            .get(CONTENT_LENGTH)
            .is_some_and(|value| value == "0")
    {
        headers.remove(CONTENT_LENGTH);
    }
}

/// Parses a `Content-Length`, which must be digits only.
pub(crate) fn parse_length(value: &HeaderValue) -> Option<u64> {
    let text = value.to_str().ok()?;
    // `parse` would accept a plus sign.
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    text.parse().ok()
}

/// Removes fields that are not allowed in trailers: those of one connection, of framing, routing, attribution and
/// authorisation (RFC 9110 section 6.5.1), and names that imitate them.
pub(crate) fn strip_trailers(trailers: &mut HeaderMap) {
    strip_hop_by_hop(trailers);
    let is_dropped = |name: &&HeaderName| {
        let name = name.as_str().as_bytes();
        is_dropped_from_trailers(name, classify(name))
    };
    // Collected first, since removals end the borrow of the names.
    let dropped: Vec<_> = trailers.keys().filter(is_dropped).cloned().collect();
    for name in dropped {
        trailers.remove(name);
    }
}

/// Removes the fields of a head that concern a connection, of which HTTP/2 has none but `TE: trailers` (RFC 9113
/// section 8.2.2).
#[cfg(feature = "http2")]
pub(crate) fn strip_for_http2(headers: &mut HeaderMap) {
    const OF_CONNECTION: [HeaderName; 5] = [
        CONNECTION,
        TRANSFER_ENCODING,
        UPGRADE,
        HeaderName::from_static("keep-alive"),
        HeaderName::from_static("proxy-connection"),
    ];
    // RFC 9110 section 7.6.1.
    let values = headers.get_all(CONNECTION).iter();
    let names = values.flat_map(|value| value.as_bytes().split(|byte| *byte == b','));
    let named: Vec<_> = names
        .filter_map(|name| HeaderName::from_bytes(name.trim_ascii()).ok())
        // `TE` may stay if it is `trailers`, see below.
        .filter(|name| *name != TE)
        .collect();
    for name in named.iter().chain(&OF_CONNECTION) {
        headers.remove(name);
    }
    if headers.get(TE).is_some_and(|value| value != "trailers") {
        headers.remove(TE);
    }
}

/// Maximum number of bytes of an HTTP/2 head whose memory its values may share without a time limit.
#[cfg(feature = "http2")]
pub(crate) const MOST_SHARED: usize = 1024;

/// Copies each value of a long head into its own memory.
///
/// An HPACK encoder keeps values as long as its connection lives (RFC 7541 section 2.3.2), and with a value all
/// memory that it shares: for an idle connection that would be megabytes.
#[cfg(feature = "http2")]
#[cold]
pub(crate) fn take_apart(headers: &mut HeaderMap) {
    for value in headers.values_mut() {
        if let Ok(mut own) = HeaderValue::from_bytes(value.as_bytes()) {
            // Such values must not enter the table of HPACK (RFC 7541 section 7.1.3).
            own.set_sensitive(value.is_sensitive());
            *value = own;
        }
    }
}

/// Copies the values of a head out of its memory, unless the head is short.
#[cfg(feature = "http2")]
pub(crate) fn take_apart_if_long(headers: &mut HeaderMap) {
    let lengths = headers.iter();
    let length: usize = lengths
        .map(|(name, value)| name.as_str().len() + value.len())
        .sum();
    if length > MOST_SHARED {
        take_apart(headers);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(lines: &[(&'static str, &str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in lines {
            headers.append(
                HeaderName::from_bytes(name.as_bytes()).unwrap(),
                HeaderValue::from_bytes(value.as_bytes()).unwrap(),
            );
        }
        headers
    }

    fn lines(headers: &HeaderMap) -> Vec<(String, String)> {
        headers
            .iter()
            .map(|(name, value)| {
                let value = String::from_utf8_lossy(value.as_bytes());
                (name.to_string(), value.into_owned())
            })
            .collect()
    }

    #[test]
    fn m01_hop_by_hop_fields_are_removed() {
        for name in [
            "Connection",
            "Upgrade",
            "Transfer-Encoding",
            "Keep-Alive",
            "Proxy-Connection",
            "Proxy-Authenticate",
            "Proxy-Authentication-Info",
            "Proxy-Authorization",
            "Proxy-Features",
            "Proxy-Instruction",
            "Security-Scheme",
            "ALPN",
            "Close",
            "TE",
            "HTTP2-Settings",
            "Upgrade-Insecure-Requests",
            "Alt-Svc",
        ] {
            let mut headers = map(&[(name, "one"), ("Foo", "bar"), (name, "two")]);
            strip_hop_by_hop(&mut headers);
            assert_eq!(lines(&headers), [("foo".into(), "bar".into())], "{name}");
        }
    }

    #[test]
    fn all_of_them_at_once_are_removed() {
        const NAMES: &str = "connection transfer-encoding keep-alive upgrade proxy-connection proxy-authenticate \
             proxy-authentication-info proxy-authorization proxy-features proxy-instruction security-scheme alpn close \
             http2-settings upgrade-insecure-requests te alt-svc";
        let mut headers: HeaderMap = NAMES
            .split_ascii_whitespace()
            .map(|name| (HeaderName::from_static(name), HeaderValue::from_static("x")))
            .collect();
        assert_eq!(headers.len(), 17);
        headers.insert("foo", HeaderValue::from_static("bar"));
        strip_hop_by_hop(&mut headers);
        assert_eq!(lines(&headers), [("foo".into(), "bar".into())]);
    }

    #[test]
    fn m04_transfer_encoding_overrides_content_length() {
        let mut headers = map(&[("Transfer-Encoding", "chunked"), ("Content-Length", "5")]);
        strip_hop_by_hop(&mut headers);
        assert!(headers.is_empty());
    }

    #[test]
    fn m05_values_with_line_breaks_cannot_be_made() {
        for value in ["a\rb", "a\nb", "a\r\nX-Injected: 1", "a\0b"] {
            assert!(
                HeaderValue::from_bytes(value.as_bytes()).is_err(),
                "{value:?}"
            );
        }
    }

    #[test]
    fn a_received_name_is_the_one_that_its_text_makes() {
        let names = "Host Connection Content-Length Transfer-Encoding Date CDN-Loop X-Forwarded-For X-Forwarded-Host \
                     X-Forwarded-Proto X-Forwarded-Prefix X-Forwarded-Port Vary Accept Server User-Agent Content-Type \
                     Cache-Control Accept-Encoding Accept-Language TE Cookie X-Own Etag Expect Accepts Content-Kind";
        for name in names.split(' ').filter(|name| !name.is_empty()) {
            for name in [name.to_owned(), name.to_uppercase(), name.to_lowercase()] {
                let bytes = name.as_bytes();
                let made = received_name(classify(bytes), bytes);
                assert_eq!(made, HeaderName::from_bytes(bytes).ok(), "{name}");
            }
        }
        for wrong in [&b"a b"[..], b"", b"x-\xe9", b"acc pt"] {
            assert_eq!(received_name(classify(wrong), wrong), None);
        }
    }

    #[test]
    fn m06_a_length_of_nothing_is_dropped_where_nothing_can_be() {
        for (status, length, kept) in [
            (100, "0", false),
            (101, "0", false),
            (204, "0", false),
            (205, "0", false),
            (200, "0", true),
            (304, "0", true),
            (204, "5", true),
        ] {
            let mut headers = map(&[("Content-Length", length)]);
            drop_pointless_length(StatusCode::from_u16(status).unwrap(), &mut headers);
            assert_eq!(!headers.is_empty(), kept, "{status} {length}");
        }
    }

    #[test]
    fn m13_m14_values_keep_their_number_and_order() {
        let given = [
            ("set-cookie", "a=1, b"),
            ("set-cookie", ""),
            ("set-cookie", "c=2"),
            ("via", "1.1 x, 1.1 y"),
            ("x-empty", ""),
        ];
        let mut headers = map(&given);
        strip_hop_by_hop(&mut headers);
        let expected = given.map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(lines(&headers), expected);
    }

    #[test]
    fn m19_fields_named_by_connection_are_removed() {
        let mut headers = map(&[
            ("Connection", "X-Hop , ,keep-alive"),
            ("Connection", "x-other"),
            ("X-Hop", "1"),
            ("X-Other", "2"),
            ("X-Stays", "3"),
        ]);
        strip_hop_by_hop(&mut headers);
        assert_eq!(lines(&headers), [("x-stays".into(), "3".into())]);
    }

    #[test]
    fn fields_for_the_recipient_cannot_be_named_away() {
        let mut headers = map(&[
            (
                "Connection",
                "host, content-length, authorization, cookie, forwarded, x-forwarded-for, (bad",
            ),
            ("Host", "a"),
            ("Content-Length", "3"),
            ("Authorization", "secret"),
            ("Cookie", "a=b"),
            ("Forwarded", "for=x"),
            ("X-Forwarded-For", "1.2.3.4"),
        ]);
        strip_hop_by_hop(&mut headers);
        assert_eq!(headers.len(), 6);
    }

    #[test]
    fn m20_pseudo_headers_are_no_header_names() {
        assert!(HeaderName::from_bytes(b":authority").is_err());
    }

    #[test]
    fn trailers_say_nothing_about_framing_or_about_who_asks() {
        let mut trailers = map(&[
            ("grpc-status", "0"),
            ("content-length", "5"),
            ("transfer-encoding", "chunked"),
            ("host", "x"),
            ("trailer", "grpc-status"),
            ("x-forwarded-for", "203.0.113.9"),
            ("x_forwarded_for", "203.0.113.9"),
            ("forwarded", "for=203.0.113.9"),
            ("authorization", "Bearer t"),
            ("cookie", "a=1"),
            ("set-cookie", "a=1"),
            ("content-type", "text/html"),
            ("expect", "100-continue"),
        ]);
        strip_trailers(&mut trailers);
        assert_eq!(lines(&trailers), [("grpc-status".into(), "0".into())]);
    }
}
