//! Requests to explain that are given as text.

use std::borrow::Cow;
use std::net::SocketAddr;

use bytes::Bytes;
use http::Method;
use http::request::Parts;
use percent_encoding::{AsciiSet, utf8_percent_encode};
use proxy_model::matching::host_to_ascii;

use super::{Explanation, Verdict};
use crate::connection::{ConnectionInfo, ListenerRules};
use crate::server::Limits;
use crate::server::http1::read_head;

/// Bytes to percent-encode: only those that are not ASCII. Invalid ASCII is kept, so that its
/// rejection can be explained.
const NOT_ASCII: &AsciiSet = &AsciiSet::EMPTY;

/// The result of parsing and validating a request.
#[derive(Clone, Debug)]
pub enum ParsedRequest {
    /// A valid request with its normalised path.
    Request(Box<Parts>, ConnectionInfo),
    /// The server rejects the request before routing.
    Rejected(Box<Explanation>),
}

impl ParsedRequest {
    /// Returns the explanation without secrets: tokens, cookies and the like. A valid request is explained by `decide`.
    pub fn explain(
        self,
        decide: impl FnOnce(&Parts, ConnectionInfo) -> Explanation,
    ) -> Explanation {
        match self {
            Self::Request(parts, connection) => decide(&parts, connection).without_secrets(&parts),
            Self::Rejected(explanation) => *explanation,
        }
    }
}

/// Parses a method, a URL and headers such as `Accept: text/plain`, and validates them with the
/// code of the server: as an HTTP/1.1 request with these limits and listener rules.
///
/// The URL needs a scheme and a host: `http://example.com/path?query`. `https` stands for a request
/// over TLS. The fragment is dropped, and Unicode in host and path is encoded, as clients do.
/// `Host` is the host of the URL unless a header sets it. `remote` is the other end of the connection, if it is known.
///
/// # Errors
///
/// Fails if a part cannot be parsed: one sentence for the user, without control characters.
pub fn request_from_text<'a>(
    method: &str,
    url: &str,
    headers: impl IntoIterator<Item = &'a str>,
    limits: &Limits,
    rules: ListenerRules,
    remote: Option<SocketAddr>,
) -> Result<ParsedRequest, String> {
    let method: Method = method
        .parse()
        .map_err(|_| format!("`{}` is not a method", method.escape_debug()))?;
    let Url { tls, host, target } = parse_url(url)?;
    let mut has_host = false;
    let mut fields = String::new();
    for header in headers {
        let line = parse_header(header)?;
        let name = line.split_once(':').map_or(line, |(name, _)| name);
        has_host |= name.eq_ignore_ascii_case("host");
        fields.push_str(line);
        fields.push_str("\r\n");
    }
    let host = match has_host {
        true => String::new(),
        false => format!("Host: {host}\r\n"),
    };
    let head = format!("{method} {target} HTTP/1.1\r\n{host}{fields}\r\n");
    let mut connection = ConnectionInfo {
        tls,
        remote,
        ..ConnectionInfo::default()
    };
    // Listeners differ in what they trust, which decides about forwarded headers.
    connection.set_rules(rules);
    Ok(match read_head(&Bytes::from(head), limits, connection) {
        Ok((request, connection)) => {
            ParsedRequest::Request(Box::new(request.into_parts().0), connection)
        }
        Err(rejection) => {
            let mut explanation = Explanation::new();
            explanation.rejected = Some(rejection.reason.to_owned());
            let explanation = explanation.ending(Verdict::Rejected, rejection.status);
            ParsedRequest::Rejected(Box::new(explanation))
        }
    })
}

/// The parts of a URL as a client sends them.
struct Url<'a> {
    tls: bool,
    host: String,
    target: Cow<'a, str>,
}

fn parse_url(url: &str) -> Result<Url<'_>, String> {
    let url = url.trim();
    let shown = url.escape_debug();
    if url.contains(char::is_control) {
        return Err(format!("`{shown}` has characters that no URL has"));
    }
    let no_host =
        || format!("`{shown}` has no scheme and host; write `http://example.com/path?query`");
    let (scheme, rest) = url.split_once("://").ok_or_else(no_host)?;
    let tls = match scheme {
        _ if scheme.eq_ignore_ascii_case("http") => false,
        _ if scheme.eq_ignore_ascii_case("https") => true,
        // The `://` belongs to a later part of the URL.
        _ if scheme.contains(['/', '?', '#']) => return Err(no_host()),
        other => {
            let other = other.escape_debug();
            return Err(format!(
                "`{other}` is not proxied; write `http://` or `https://`"
            ));
        }
    };
    let (host, target) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
    if host.is_empty() {
        return Err(no_host());
    }
    let host =
        host_to_ascii(host).ok_or_else(|| format!("`{}` is not a host", host.escape_debug()))?;
    // Clients do not send the fragment.
    let target = target.split_once('#').map_or(target, |(before, _)| before);
    let target: Cow<'_, str> = utf8_percent_encode(target, NOT_ASCII).into();
    // A URL without a path means `/` (RFC 3986 section 6.2.3).
    let target = match target.starts_with('/') {
        true => target,
        false => format!("/{target}").into(),
    };
    Ok(Url { tls, host, target })
}

/// Checks a header line and returns it without surrounding white space.
fn parse_header(header: &str) -> Result<&str, String> {
    let line = header.trim();
    let shown = line.escape_debug();
    if !line.contains(':') {
        return Err(format!("`{shown}` is not a header; write `Name: value`"));
    }
    // A line end would add a header, or end the head.
    if line.contains(|c: char| c.is_ascii_control() && c != '\t') {
        return Err(format!(
            "`{shown}` has characters that a header cannot have"
        ));
    }
    Ok(line)
}

#[cfg(test)]
mod tests {
    use http::header::HOST;

    use super::*;

    fn asked(method: &str, url: &str, headers: &[&str]) -> ParsedRequest {
        let headers = headers.iter().copied();
        let limits = Limits::default();
        let rules = ListenerRules::default();
        request_from_text(method, url, headers, &limits, rules, None).unwrap()
    }

    fn read(method: &str, url: &str, headers: &[&str]) -> (Parts, ConnectionInfo) {
        match asked(method, url, headers) {
            ParsedRequest::Request(parts, connection) => (*parts, connection),
            ParsedRequest::Rejected(explanation) => panic!("{explanation:?}"),
        }
    }

    fn rejected(method: &str, url: &str, headers: &[&str]) -> u16 {
        match asked(method, url, headers) {
            ParsedRequest::Rejected(explanation) => {
                assert_eq!(explanation.outcome, Verdict::Rejected);
                assert!(explanation.rejected.is_some());
                explanation.status.unwrap().as_u16()
            }
            ParsedRequest::Request(parts, _) => panic!("{parts:?}"),
        }
    }

    #[test]
    fn a_url_becomes_a_request_as_a_client_sends_it() {
        let (parts, connection) = read(
            "PURGE",
            "https://a.example:8443/x%2Fy?q=1#part",
            &["X-A: b", "x-a:c"],
        );
        assert_eq!(parts.method, "PURGE");
        assert_eq!(parts.uri, "/x%2Fy?q=1");
        assert_eq!(parts.headers[HOST], "a.example:8443");
        assert_eq!(parts.headers.get_all("x-a").iter().count(), 2);
        assert!(connection.tls);
    }

    #[test]
    fn an_address_line_of_a_browser_can_be_pasted() {
        let (parts, _) = read(
            "GET",
            " HTTP://bücher.example:81/schöne bücher"
                .split(" b")
                .next()
                .unwrap(),
            &[],
        );
        assert_eq!(parts.headers[HOST], "xn--bcher-kva.example:81");
        assert_eq!(parts.uri, "/sch%C3%B6ne");
        let (parts, _) = read("GET", "http://a.example?q=ü", &[]);
        assert_eq!(parts.uri, "/?q=%C3%BC");
    }

    #[test]
    fn a_host_header_wins_over_the_url() {
        let (parts, _) = read("GET", "http://a.example", &["host: b.example"]);
        assert_eq!(parts.headers[HOST], "b.example");
        assert_eq!(parts.uri, "/");
    }

    #[test]
    fn what_the_server_does_first_is_done() {
        assert_eq!(
            read("GET", "http://a/x/../admin/secret", &[]).0.uri,
            "/admin/secret"
        );
        assert_eq!(
            read("GET", "http://a/x/%2e%2E/adm?q=/../", &[]).0.uri,
            "/adm?q=/../"
        );
        for (method, url, header, status) in [
            ("TRACE", "http://a/", "A: b", 405),
            ("CONNECT", "http://a/", "A: b", 405),
            ("GET", "http://a/x/..;/y", "A: b", 400),
            ("GET", "http://a/%00", "A: b", 400),
            ("GET", "http://a/%zz", "A: b", 400),
            ("GET", "http://a/\"", "A: b", 400),
            ("GET", "http://a/x y", "A: b", 400),
            ("GET", "http://u@a/", "A: b", 400),
            ("GET", "http://a:b:c/", "A: b", 400),
            ("GET", "http://a/", "Expect: foo", 417),
            ("GET", "http://a/", "X_Forwarded_For: 1", 400),
            ("POST", "http://a/", "Content-Length: abc", 400),
            ("GET", "http://a/", "Name : value", 400),
        ] {
            assert_eq!(
                rejected(method, url, &[header]),
                status,
                "{method} {url} {header}"
            );
        }
        assert_eq!(rejected("GET", "http://a/", &["Host: a", "Host: a"]), 400);
        let long = format!("http://a/{}", "x".repeat(9_000));
        assert_eq!(rejected("GET", &long, &[]), 414);
    }

    #[test]
    fn mistakes_are_named() {
        let error = |method, url, header| {
            let limits = Limits::default();
            let rules = ListenerRules::default();
            request_from_text(method, url, [header], &limits, rules, None).unwrap_err()
        };
        assert!(error("GE T", "http://a/", "A: b").contains("GE T"));
        assert!(error("GET", "a.example/x", "A: b").contains("http://example.com"));
        assert!(error("GET", "/x?http://a/", "A: b").contains("http://example.com"));
        assert!(error("GET", "ftp://a/", "A: b").contains("ftp"));
        assert!(error("GET", "http://a/", "nonsense").contains("Name: value"));
        assert!(error("GET", "http://a/", "A: b\u{7f}\n").contains('a'));
        let forged = "x\r\n\u{1b}[2J";
        for error in [
            error(forged, "", ""),
            error("GET", forged, ""),
            error("GET", &format!("http://a/{forged}b"), "A: b"),
            error("GET", "http://a/", &format!("A: {forged}b")),
        ] {
            assert!(!error.contains(char::is_control), "{error:?}");
        }
    }
}
