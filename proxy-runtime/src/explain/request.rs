//! A request to explain, as a person writes it.

use http::header::{HOST, HeaderName, HeaderValue};
use http::request::Parts;
use http::{Method, Request, Uri};

use crate::connection::ConnectionInfo;

/// Makes a request of a method, a URL and headers such as `Accept: text/plain`.
///
/// The URL has a scheme and a host, `http://example.com/path?query`; `https` makes it one that came over TLS. Unless a
/// header says otherwise, `Host` is the URL's host.
///
/// # Errors
///
/// Which part cannot be understood, in one sentence for the person who wrote it, without control characters.
pub fn request_from_text<'a>(
    method: &str,
    url: &str,
    headers: impl IntoIterator<Item = &'a str>,
) -> Result<(Parts, ConnectionInfo), String> {
    let method: Method = method
        .parse()
        .map_err(|_| format!("`{}` is not a method", method.escape_debug()))?;
    let uri = parse_url(url)?;
    let tls = uri.scheme_str() == Some("https");
    let authority = uri.authority().map(ToString::to_string).unwrap_or_default();
    let path = uri.path_and_query().map_or("/", |path| path.as_str());
    let target: Uri = path
        .parse()
        .map_err(|error| format!("`{path}` is not a path: {error}"))?;

    let mut request = Request::new(());
    *request.method_mut() = method;
    *request.uri_mut() = target;
    for header in headers {
        let (name, value) = parse_header(header)?;
        request.headers_mut().append(name, value);
    }
    if !request.headers().contains_key(HOST) {
        let host = HeaderValue::try_from(&authority)
            .map_err(|_| format!("`{authority}` is not a host"))?;
        request.headers_mut().insert(HOST, host);
    }
    Ok((
        request.into_parts().0,
        ConnectionInfo::default().with_tls(tls),
    ))
}

fn parse_url(url: &str) -> Result<Uri, String> {
    let shown = url.escape_debug();
    let uri: Uri = url.parse().map_err(|error| {
        format!("`{shown}` is not a URL such as `http://example.com/path?query`: {error}")
    })?;
    match uri.scheme_str() {
        Some("http" | "https") if uri.authority().is_some() => Ok(uri),
        Some("http" | "https") | None => Err(format!(
            "`{shown}` has no scheme and host; write `http://example.com/path?query`"
        )),
        Some(other) => Err(format!(
            "`{other}` is not proxied; write `http://` or `https://`"
        )),
    }
}

fn parse_header(header: &str) -> Result<(HeaderName, HeaderValue), String> {
    let (name, value) = header.split_once(':').ok_or_else(|| {
        format!(
            "`{}` is not a header; write `Name: value`",
            header.escape_debug()
        )
    })?;
    let name = HeaderName::try_from(name.trim()).map_err(|_| {
        format!(
            "`{}` is not the name of a header",
            name.trim().escape_debug()
        )
    })?;
    let value = HeaderValue::try_from(value.trim())
        .map_err(|_| format!("the value of `{name}` has characters that a header cannot have"))?;
    Ok((name, value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_becomes_a_request_as_a_client_sends_it() {
        let (parts, connection) = request_from_text(
            "PURGE",
            "https://a.example:8443/x%2Fy?q=1",
            ["X-A: b", "x-a:c"],
        )
        .unwrap();
        assert_eq!(parts.method, "PURGE");
        assert_eq!(parts.uri, "/x%2Fy?q=1");
        assert_eq!(parts.headers[HOST], "a.example:8443");
        assert_eq!(parts.headers.get_all("x-a").iter().count(), 2);
        assert!(connection.tls);
    }

    #[test]
    fn a_host_header_wins_over_the_url() {
        let (parts, _) = request_from_text("GET", "http://a.example", ["Host: b.example"]).unwrap();
        assert_eq!(parts.headers[HOST], "b.example");
        assert_eq!(parts.uri, "/");
    }

    #[test]
    fn mistakes_are_named() {
        let error = |method, url, header| request_from_text(method, url, [header]).unwrap_err();
        assert!(error("GE T", "http://a/", "A: b").contains("GE T"));
        assert!(error("GET", "a.example/x", "A: b").contains("http://example.com"));
        assert!(error("GET", "ftp://a/", "A: b").contains("ftp"));
        assert!(error("GET", "http://a/", "nonsense").contains("Name: value"));
        assert!(error("GET", "http://a/", "A: b\u{7f}\n").contains('a'));
        let forged = "x\r\n\u{1b}[2J";
        for error in [
            error(forged, "", ""),
            error("GET", forged, ""),
            error("GET", "http://a/", forged),
        ] {
            assert!(!error.contains(char::is_control), "{error:?}");
        }
    }
}
