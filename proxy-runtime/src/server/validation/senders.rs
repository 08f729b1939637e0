//! Fields about the origin of a request: removed, or believed of trusted proxies.

#[cfg(feature = "http2")]
use http::HeaderMap;
#[cfg(feature = "http2")]
use http::header::{FORWARDED, HeaderName};

use crate::connection::{ClientField, ConnectionInfo, TrustedProxies};
use crate::http1::{ClassSet, FieldClass, HeadTable};

/// The fields that describe the client of a trusted proxy. They are removed after reading; transforms write them
/// again from the parsed values.
const READ: ClassSet = ClassSet::EMPTY
    .with(FieldClass::Forwarded)
    .with(FieldClass::XForwardedFor)
    .with(FieldClass::XForwardedProto);

/// All fields about the origin of a request.
const CLAIMS: ClassSet = READ
    .with(FieldClass::XForwarded)
    .with(FieldClass::XForwardedHost)
    .with(FieldClass::XForwardedPrefix);

/// Removes the fields of an HTTP/1.1 head that only trusted proxies may send.
///
/// Returns the client of the request, if a trusted proxy reports another one than the connection's.
#[inline]
pub(crate) fn resolve_client(
    buffer: &[u8],
    table: &mut HeadTable,
    info: &ConnectionInfo,
) -> Option<Box<ConnectionInfo>> {
    let rules = info.rules;
    if let Some(proxies) = rules.trusted_proxies {
        return resolve_by_list(buffer, table, info, proxies);
    }
    if !rules.trusts_senders && table.classes().contains(FieldClass::XForwarded) {
        table.distrust(ClassSet::EMPTY.with(FieldClass::XForwarded));
    }
    None
}

#[inline(never)]
fn resolve_by_list(
    buffer: &[u8],
    table: &mut HeadTable,
    info: &ConnectionInfo,
    proxies: TrustedProxies,
) -> Option<Box<ConnectionInfo>> {
    if table.classes().intersection(CLAIMS).is_empty() {
        return None;
    }
    if !rules_trust(info) {
        table.distrust(CLAIMS);
        return None;
    }
    let lines = |class: FieldClass| {
        // From the nearest proxy, which wrote the last line, to the client.
        let fields = table.fields().iter().rev();
        let fields = fields.filter(move |field| field.class() == class);
        fields.map(|field| field.value().get(buffer))
    };
    let client = match proxies.field() {
        ClientField::XForwardedFor => from_x_forwarded(
            info,
            proxies,
            lines(FieldClass::XForwardedFor),
            lines(FieldClass::XForwardedProto),
        ),
        ClientField::Forwarded => from_forwarded(info, proxies, lines(FieldClass::Forwarded)),
    };
    table.distrust(removed(proxies));
    client.map(Box::new)
}

/// Removes these fields from an HTTP/2 head, and returns the reported client.
#[cfg(feature = "http2")]
#[inline]
pub(crate) fn resolve_map_client(
    headers: &mut HeaderMap,
    info: &ConnectionInfo,
) -> Option<Box<ConnectionInfo>> {
    resolve_map_by_list(headers, info, info.rules.trusted_proxies?)
}

#[cfg(feature = "http2")]
#[inline(never)]
fn resolve_map_by_list(
    headers: &mut HeaderMap,
    info: &ConnectionInfo,
    proxies: TrustedProxies,
) -> Option<Box<ConnectionInfo>> {
    const FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
    const PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");
    if !rules_trust(info) {
        remove_classes(headers, CLAIMS);
        return None;
    }
    let lines = |name: HeaderName| {
        let values = headers.get_all(name).iter().rev();
        values.map(|value| value.as_bytes()).collect::<Vec<_>>()
    };
    let client = match proxies.field() {
        ClientField::XForwardedFor => from_x_forwarded(
            info,
            proxies,
            lines(FOR).into_iter(),
            lines(PROTO).into_iter(),
        ),
        ClientField::Forwarded => from_forwarded(info, proxies, lines(FORWARDED).into_iter()),
    };
    remove_classes(headers, removed(proxies));
    client.map(Box::new)
}

/// Removes the fields of these classes.
#[cfg(feature = "http2")]
#[cold]
pub(super) fn remove_classes(headers: &mut HeaderMap, classes: ClassSet) {
    let is_removed =
        |name: &&HeaderName| classes.contains(crate::http1::classify(name.as_str().as_bytes()));
    // Collected first, since removals end the borrow of the names.
    let removed: Vec<_> = headers.keys().filter(is_removed).cloned().collect();
    for name in removed {
        headers.remove(name);
    }
}

/// Returns true if the connection comes from a trusted proxy. This was decided at its accept.
fn rules_trust(info: &ConnectionInfo) -> bool {
    info.rules.trusts_senders
}

/// Returns the fields to remove from a request of a trusted proxy. A proxy that writes `Forwarded` may pass on its
/// client's values of the other fields.
fn removed(proxies: TrustedProxies) -> ClassSet {
    match proxies.field() {
        ClientField::XForwardedFor => READ,
        ClientField::Forwarded => CLAIMS,
    }
}

/// The client by `X-Forwarded-For` and `X-Forwarded-Proto`, whose lines come from the last one on.
fn from_x_forwarded<'a>(
    info: &ConnectionInfo,
    proxies: TrustedProxies,
    addresses: impl Iterator<Item = &'a [u8]>,
    schemes: impl Iterator<Item = &'a [u8]>,
) -> Option<ConnectionInfo> {
    let entries = addresses.flat_map(|line| line.rsplit(|byte| *byte == b','));
    let entries = entries.map(|entry| str::from_utf8(entry).ok());
    let (client, count) = proxies.client(info.remote?, entries);
    // As many proxies wrote their schemes as their addresses; one that replaces the field leaves one.
    let schemes = schemes.flat_map(|line| line.rsplit(|byte| *byte == b','));
    let scheme = schemes.take(count.max(1)).last();
    Some(behind(info, client, scheme))
}

/// The client by `Forwarded`, whose lines come from the last one on.
fn from_forwarded<'a>(
    info: &ConnectionInfo,
    proxies: TrustedProxies,
    lines: impl Iterator<Item = &'a [u8]>,
) -> Option<ConnectionInfo> {
    let elements = lines.flat_map(elements_from_last).map(Element::read);
    let elements: Vec<_> = elements.collect();
    let entries = elements.iter().map(|element| element.client.as_deref());
    let (client, count) = proxies.client(info.remote?, entries);
    let element = elements.get(count.saturating_sub(1));
    let scheme = element.and_then(|element| element.scheme.as_deref());
    Some(behind(info, client, scheme.map(str::as_bytes)))
}

/// The facts about a client behind the connection of a proxy.
fn behind(
    info: &ConnectionInfo,
    client: std::net::SocketAddr,
    scheme: Option<&[u8]>,
) -> ConnectionInfo {
    let mut behind = *info;
    behind.remote = Some(client);
    match scheme.map(<[u8]>::trim_ascii) {
        Some(scheme) if scheme.eq_ignore_ascii_case(b"https") => behind.tls = true,
        Some(scheme) if scheme.eq_ignore_ascii_case(b"http") => behind.tls = false,
        // Unknown, so it is that of the connection.
        _ => {}
    }
    behind
}

/// An element of `Forwarded`, written by one proxy.
#[derive(Debug, Default, PartialEq, Eq)]
struct Element {
    client: Option<String>,
    scheme: Option<String>,
}

impl Element {
    fn read(element: &[u8]) -> Self {
        let mut read = Self::default();
        for pair in split(element, b';') {
            let Some(equals) = pair.iter().position(|byte| *byte == b'=') else {
                continue;
            };
            let (name, value) = (pair[..equals].trim_ascii(), &pair[equals + 1..]);
            let value = unquoted(value.trim_ascii());
            if name.eq_ignore_ascii_case(b"for") {
                read.client = value;
            } else if name.eq_ignore_ascii_case(b"proto") {
                read.scheme = value;
            }
        }
        read
    }
}

/// A token, or the content of a quoted string.
fn unquoted(value: &[u8]) -> Option<String> {
    let value = str::from_utf8(value).ok()?;
    let Some(rest) = value.strip_prefix('"') else {
        return Some(value.to_owned());
    };
    let inner = rest.strip_suffix('"')?;
    let mut text = String::with_capacity(inner.len());
    let mut is_escaped = false;
    for character in inner.chars() {
        is_escaped = character == '\\' && !is_escaped;
        if !is_escaped {
            text.push(character);
        }
    }
    Some(text)
}

/// The elements of a line from the last one on.
///
/// The line is read from its end, since the last proxy wrote that. A quote that a client left open at the beginning
/// would otherwise hide what proxies have appended.
fn elements_from_last(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = Some(line);
    std::iter::from_fn(move || {
        let line = rest?;
        let mut is_quoted = false;
        let comma = (0..line.len()).rev().find(|&at| match line[at] {
            b'"' if !is_escaped(line, at) => {
                is_quoted = !is_quoted;
                false
            }
            byte => byte == b',' && !is_quoted,
        });
        rest = comma.map(|comma| &line[..comma]);
        Some(comma.map_or(line, |comma| &line[comma + 1..]))
    })
}

/// Returns true if a backslash escapes the byte at this place.
fn is_escaped(line: &[u8], at: usize) -> bool {
    let backslashes = line[..at].iter().rev();
    backslashes.take_while(|byte| **byte == b'\\').count() % 2 == 1
}

/// The parts of a value between separators that are not quoted.
fn split(value: &[u8], separator: u8) -> impl Iterator<Item = &[u8]> {
    let (mut is_quoted, mut is_escaped) = (false, false);
    value.split(move |byte| {
        let was_escaped = std::mem::take(&mut is_escaped);
        match byte {
            _ if was_escaped => {}
            b'\\' if is_quoted => is_escaped = true,
            b'"' => is_quoted = !is_quoted,
            _ => return *byte == separator && !is_quoted,
        }
        false
    })
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use super::*;
    use crate::connection::ListenerRules;
    use crate::http1::{HeadLimits, Status, parse_request};

    const PROXY: &str = "10.0.0.1:5000";
    const STRANGER: &str = "192.0.2.66:5000";

    fn info(peer: &str, field: ClientField) -> ConnectionInfo {
        let peer: SocketAddr = peer.parse().unwrap();
        let proxies = TrustedProxies::new(["10.0.0.0/8".parse().unwrap()], field).unwrap();
        let mut info = ConnectionInfo::new(peer);
        info.rules = ListenerRules {
            trusted_proxies: Some(proxies),
            trusts_senders: proxies.trust(peer.ip()),
            ..ListenerRules::default()
        };
        info
    }

    /// The client with its scheme, and the names of the fields that are left, over HTTP/1.1 and HTTP/2 alike.
    fn settled(peer: &str, field: ClientField, lines: &[&str]) -> (String, bool, Vec<String>) {
        let info = info(peer, field);
        let mut head = b"GET / HTTP/1.1\r\n".to_vec();
        for line in lines {
            head.extend_from_slice(line.as_bytes());
            head.extend_from_slice(b"\r\n");
        }
        head.extend_from_slice(b"Host: h\r\n\r\n");
        let mut table = HeadTable::new();
        let parsed = parse_request(&head, &HeadLimits::default(), &mut table);
        assert!(matches!(parsed, Ok(Status::Complete(_))), "{parsed:?}");
        let client = resolve_client(&head, &mut table, &info);
        let client = client.map_or(info, |client| *client);
        let left = table.fields().iter();
        let left = left.filter(|field| field.class() != FieldClass::Distrusted);
        let left = left.map(|field| field.name().get(&head).to_ascii_lowercase());
        let mut left: Vec<_> = left
            .map(|name| String::from_utf8(name).unwrap())
            .filter(|name| name != "host")
            .collect();
        left.sort();
        #[cfg(feature = "http2")]
        {
            let mut headers = HeaderMap::new();
            for line in lines {
                let (name, value) = line.split_once(':').unwrap();
                let name: HeaderName = name.parse().unwrap();
                headers.append(name, value.trim().parse().unwrap());
            }
            let same = resolve_map_client(&mut headers, &info).map_or(info, |client| *client);
            assert_eq!(same, client, "{lines:?}");
            let mut names: Vec<_> = headers.keys().map(|name| name.as_str()).collect();
            names.sort_unstable();
            let mut once = left.clone();
            once.dedup();
            assert_eq!(names, once, "{lines:?}");
        }
        (client.remote.unwrap().to_string(), client.tls, left)
    }

    #[test]
    fn a_trusted_proxy_says_who_the_client_is() {
        use ClientField::{Forwarded, XForwardedFor};
        for (field, lines, client, is_https) in [
            (
                XForwardedFor,
                &["X-Forwarded-For: 192.0.2.1"][..],
                "192.0.2.1:0",
                false,
            ),
            (
                XForwardedFor,
                &[
                    "X-Forwarded-For: 6.6.6.6, 192.0.2.1",
                    "X-Forwarded-Proto: https",
                ],
                "192.0.2.1:0",
                true,
            ),
            // Lines are one list.
            (
                XForwardedFor,
                &[
                    "x-forwarded-for: 6.6.6.6",
                    "x-forwarded-for: 192.0.2.1",
                    "x-forwarded-for: 10.0.0.9",
                ],
                "192.0.2.1:0",
                false,
            ),
            // Of several schemes the one that was written with the client's address.
            (
                XForwardedFor,
                &[
                    "X-Forwarded-For: 6.6.6.6, 192.0.2.1, 10.0.0.9",
                    "X-Forwarded-Proto: http, https, http",
                ],
                "192.0.2.1:0",
                true,
            ),
            (
                XForwardedFor,
                &[
                    "X-Forwarded-For: 192.0.2.1",
                    "X-Forwarded-Proto: https, http",
                ],
                "192.0.2.1:0",
                false,
            ),
            (XForwardedFor, &["X-Forwarded-Proto: https"], PROXY, true),
            (XForwardedFor, &["X-Forwarded-Proto: gopher"], PROXY, false),
            (XForwardedFor, &["X-Forwarded-For: unknown"], PROXY, false),
            // The other field is the client's.
            (
                XForwardedFor,
                &["Forwarded: for=6.6.6.6;proto=https"],
                PROXY,
                false,
            ),
            (
                Forwarded,
                &[
                    "Forwarded: for=6.6.6.6, for=\"192.0.2.1:47\";proto=https;by=10.0.0.1",
                    "X-Forwarded-For: 6.6.6.6",
                ],
                "192.0.2.1:47",
                true,
            ),
            (
                Forwarded,
                &[
                    "Forwarded: for=\"[2001:db8::1]\";host=\"a,b;for=6.6.6.6\", For=10.0.0.7 ; Proto=https",
                ],
                "[2001:db8::1]:0",
                false,
            ),
            (
                Forwarded,
                &["Forwarded: for=\"\\192.0.2.1\";Proto=HTTPS"],
                "192.0.2.1:0",
                true,
            ),
            // A quote that the client leaves open does not hide what the proxy appends.
            (
                Forwarded,
                &["Forwarded: for=203.0.113.5;x=\", for=192.0.2.1;proto=https"],
                "192.0.2.1:0",
                true,
            ),
            (
                Forwarded,
                &["Forwarded: \", for=\"[2001:db8::1]\""],
                "[2001:db8::1]:0",
                false,
            ),
            (
                Forwarded,
                &["Forwarded: for=203.0.113.5;x=\"\\, for=\"192.0.2.1:47\";by=\"a\\\"b,c\""],
                "192.0.2.1:47",
                false,
            ),
            (
                Forwarded,
                &["Forwarded: by=10.0.0.1;proto=https"],
                PROXY,
                true,
            ),
            (Forwarded, &["Forwarded: for=_gazonk"], PROXY, false),
            (Forwarded, &["Forwarded: for=\"192.0.2.1"], PROXY, false),
            (
                Forwarded,
                &["X-Forwarded-For: 6.6.6.6", "X-Forwarded-Proto: https"],
                PROXY,
                false,
            ),
        ] {
            let (found, tls, left) = settled(PROXY, field, lines);
            assert_eq!((&*found, tls), (client, is_https), "{lines:?}");
            assert_eq!(left, Vec::<String>::new(), "{lines:?}");
        }
    }

    proptest::proptest! {
        /// The address that a trusted proxy appends counts, whatever the client has sent before it.
        #[test]
        fn a_client_cannot_hide_what_a_proxy_appends(
            sent in r#"[ -~]{0,24}"#,
            joins in r#"[";,=\\ a]{0,8}"#,
            appended in proptest::sample::select(&["for=192.0.2.1", "for=\"192.0.2.1\";proto=http", "by=\"a,\\\"\";for=192.0.2.1"][..]),
        ) {
            let line = format!("Forwarded: {sent}{joins}, {appended}");
            let (client, ..) = settled(PROXY, ClientField::Forwarded, &[&line]);
            proptest::prop_assert_eq!(client, "192.0.2.1:0");
        }
    }

    #[test]
    fn others_say_nothing() {
        let lines = [
            "X-Forwarded-For: 10.0.0.1",
            "X-Forwarded-For: 10.0.0.2",
            "X-Forwarded-Proto: https",
            "X-Forwarded-Host: other.example",
            "X-Forwarded-Prefix: /x",
            "X-Forwarded-Port: 443",
            "X-Real-IP: 10.0.0.1",
            "Forwarded: for=10.0.0.1",
            "Accept: a",
        ];
        let strange = settled(STRANGER, ClientField::XForwardedFor, &lines);
        assert_eq!(
            strange,
            (STRANGER.to_owned(), false, vec!["accept".to_owned()])
        );
        // What is not read of a trusted proxy is kept.
        let (_, _, left) = settled(PROXY, ClientField::XForwardedFor, &lines);
        let kept = [
            "accept",
            "x-forwarded-host",
            "x-forwarded-port",
            "x-forwarded-prefix",
            "x-real-ip",
        ];
        assert_eq!(left, kept);
        let (_, _, left) = settled(PROXY, ClientField::Forwarded, &lines);
        assert_eq!(left, ["accept"]);
    }
}
