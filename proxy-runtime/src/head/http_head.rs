//! The head of a request in `http` types, as routing and transforms see it.

use std::net::IpAddr;

use http::header::{HOST, HeaderValue};
use http::request::Parts;
use http::uri::Scheme;
use http::{HeaderMap, Method, Version};
use proxy_model::RequestHead;

use crate::connection::ConnectionInfo;
use crate::head::HeaderMutations;
use crate::http1::{ClassSet, FieldClass, classify, has_underscore};

/// The head of a request in `http` types, with its connection's information.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HttpHead<'a> {
    parts: &'a Parts,
    method: &'a Method,
    /// The authority: the first of HTTP/2's `:authority`, an absolute target and `Host` (RFC 9112 section 3.2.2, RFC
    /// 9113 section 8.3.1).
    authority: &'a str,
    connection: ConnectionInfo,
    https: bool,
    /// The classes of the fields.
    classes: ClassSet,
    edits: Option<&'a HeaderMutations>,
}

impl<'a> HttpHead<'a> {
    /// Takes the [`ConnectionInfo`] from the request's extensions.
    pub(crate) fn new(parts: &'a Parts) -> Self {
        let (classes, host) = read_fields(&parts.headers);
        Self::told(parts, classes, host)
    }

    /// Creates the head; `classes` are the classes of its fields.
    pub(crate) fn of_classes(parts: &'a Parts, classes: ClassSet) -> Self {
        Self::told(parts, classes, host(parts, classes))
    }

    fn told(parts: &'a Parts, classes: ClassSet, host: Option<&'a HeaderValue>) -> Self {
        let connection = parts.extensions.get::<ConnectionInfo>();
        let known = connection.copied().unwrap_or_default();
        let mut head = Self::with_fields(parts, known, classes, host);
        if connection.is_none() {
            // The program did not say; the client's word is all there is.
            head.https = parts.uri.scheme() == Some(&Scheme::HTTPS);
        }
        head
    }

    /// Returns true if the request may ask for another protocol, which is rare.
    pub(crate) fn may_switch(&self) -> bool {
        self.classes.contains(FieldClass::Upgrade) || self.parts.method == Method::CONNECT
    }

    pub(crate) fn with_connection(parts: &'a Parts, connection: ConnectionInfo) -> Self {
        let (classes, host) = read_fields(&parts.headers);
        Self::with_fields(parts, connection, classes, host)
    }

    /// Creates the head with its connection; `classes` are the classes of its fields.
    #[cfg(all(feature = "http2", feature = "server"))]
    pub(crate) fn with_classes(
        parts: &'a Parts,
        connection: ConnectionInfo,
        classes: ClassSet,
    ) -> Self {
        Self::with_fields(parts, connection, classes, host(parts, classes))
    }

    fn with_fields(
        parts: &'a Parts,
        connection: ConnectionInfo,
        classes: ClassSet,
        host: Option<&'a HeaderValue>,
    ) -> Self {
        Self {
            parts,
            method: method(parts),
            authority: authority(parts, host),
            connection,
            https: connection.tls,
            classes,
            edits: None,
        }
    }

    /// Returns the method. A WebSocket over HTTP/2 (`CONNECT`, RFC 8441) is routed like one over HTTP/1.1, as
    /// `GET`.
    pub(crate) fn method_value(&self) -> &'a Method {
        self.method
    }

    pub(crate) fn is_http2(&self) -> bool {
        self.parts.version >= Version::HTTP_2
    }

    pub(crate) fn version(&self) -> Version {
        self.parts.version
    }

    /// Adds the changes of filters, which apply to the forwarded request. Accessors still return the received head.
    #[must_use]
    pub(crate) fn with_edits(self, edits: &'a HeaderMutations) -> Self {
        Self {
            edits: (!edits.is_empty()).then_some(edits),
            ..self
        }
    }

    /// The changes by filters, if any.
    pub(crate) fn edits(&self) -> Option<&'a HeaderMutations> {
        self.edits
    }

    pub(crate) fn connection(&self) -> ConnectionInfo {
        self.connection
    }

    /// Returns the classes of its fields: bits for the fields that the proxy must handle.
    pub(crate) fn classes(&self) -> ClassSet {
        self.classes
    }

    pub(crate) fn headers(&self) -> &'a HeaderMap {
        &self.parts.headers
    }

    /// Host and port as the client named them; empty when it named none.
    pub(crate) fn authority_str(&self) -> &'a str {
        self.authority
    }
}

fn authority<'a>(parts: &'a Parts, host: Option<&'a HeaderValue>) -> &'a str {
    if let Some(authority) = parts.uri.authority() {
        return authority.as_str();
    }
    // Nearly all are ASCII, which takes less to find out than that they are UTF-8.
    host.and_then(|host| {
        let ascii = host.to_str().ok();
        ascii.or_else(|| std::str::from_utf8(host.as_bytes()).ok())
    })
    .unwrap_or_default()
}

/// The classes of the fields that are there, and the first `Host`: to look once at each name is cheaper than to look
/// a few names up.
fn read_fields(fields: &HeaderMap) -> (ClassSet, Option<&HeaderValue>) {
    let mut classes = ClassSet::EMPTY;
    let mut host = None;
    for (name, value) in fields {
        let name = name.as_str().as_bytes();
        let class = classify(name);
        classes = classes.with(class);
        // The other classes are those of whole names, and none of these has an underscore.
        let may_be_any = matches!(class, FieldClass::Other | FieldClass::XForwarded);
        if may_be_any && has_underscore(name) {
            classes = classes.with(FieldClass::Underscored);
        }
        if class == FieldClass::Host && host.is_none() {
            host = Some(value);
        }
    }
    (classes, host)
}

/// The first `Host`, which is only looked for if it is there. Nearly always it is the first field: to go through the
/// map finds it sooner than a hash.
fn host(parts: &Parts, classes: ClassSet) -> Option<&HeaderValue> {
    if !classes.contains(FieldClass::Host) {
        return None;
    }
    let mut fields = parts.headers.iter();
    fields.find_map(|(name, value)| (name == HOST).then_some(value))
}

/// Returns whether an HTTP/2 client asks for a WebSocket.
#[cfg(feature = "http2")]
pub(crate) fn is_websocket_connect(parts: &Parts) -> bool {
    parts.method == Method::CONNECT
        && parts
            .extensions
            .get::<hyper::ext::Protocol>()
            .is_some_and(|protocol| protocol.as_str() == "websocket")
}

#[cfg(feature = "http2")]
fn method(parts: &Parts) -> &Method {
    if is_websocket_connect(parts) {
        &Method::GET
    } else {
        &parts.method
    }
}

#[cfg(not(feature = "http2"))]
fn method(parts: &Parts) -> &Method {
    &parts.method
}

impl RequestHead for HttpHead<'_> {
    fn method(&self) -> &str {
        self.method.as_str()
    }

    fn path(&self) -> &str {
        self.parts.uri.path()
    }

    fn query(&self) -> Option<&str> {
        self.parts.uri.query()
    }

    fn authority(&self) -> &str {
        self.authority_str()
    }

    fn is_https(&self) -> bool {
        self.https
    }

    fn client_address(&self) -> Option<IpAddr> {
        self.connection.client_address()
    }

    fn for_each_header(&self, name: &str, each: &mut dyn FnMut(&[u8]) -> bool) {
        // HTTP/2 has it as `:authority`, but filters and matchers look for `Host`.
        if name == HOST.as_str() && !self.parts.headers.contains_key(HOST) {
            let authority = self.authority_str();
            if !authority.is_empty() {
                each(authority.as_bytes());
            }
            return;
        }
        // Found by its text: to make a `HeaderName` of one that is not well known would allocate.
        for value in self.parts.headers.get_all(name) {
            if !each(value.as_bytes()) {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use http::Request;

    use super::*;

    fn parts(request: http::request::Builder) -> Parts {
        request.body(()).unwrap().into_parts().0
    }

    #[test]
    fn the_target_has_precedence_over_host() {
        for (uri, host, expected) in [
            ("/x", Some("a.example:81"), "a.example:81"),
            ("http://b.example:82/x", Some("a.example"), "b.example:82"),
            ("http://b.example/x", None, "b.example"),
            ("/x", None, ""),
        ] {
            let mut request = Request::get(uri);
            if let Some(host) = host {
                request = request.header(HOST, host);
            }
            let parts = parts(request);
            let head = HttpHead::new(&parts);
            assert_eq!(head.authority(), expected, "{uri} {host:?}");
        }
    }

    #[test]
    fn the_connection_knows_the_scheme_better_than_the_client() {
        let claimed = parts(Request::get("https://a/"));
        assert!(HttpHead::new(&claimed).is_https());
        let known = parts(Request::get("https://a/").extension(ConnectionInfo::default()));
        assert!(!HttpHead::new(&known).is_https());
        let tls = ConnectionInfo {
            tls: true,
            ..ConnectionInfo::default()
        };
        let known = parts(Request::get("/").extension(tls));
        assert!(HttpHead::new(&known).is_https());
    }

    #[test]
    fn header_values_come_in_order_until_told_to_stop() {
        let parts = parts(
            Request::get("/")
                .header("x-a", "1")
                .header("x-b", "no")
                .header("x-a", "2")
                .header("x-a", "3"),
        );
        let head = HttpHead::new(&parts);
        let mut seen = Vec::new();
        head.for_each_header("x-a", &mut |value| {
            seen.push(value.to_vec());
            seen.len() < 2
        });
        assert_eq!(seen, [b"1", b"2"]);
    }

    #[test]
    fn host_is_a_header_in_http_2_as_well() {
        let (parts, ()) = Request::get("https://a.example:8443/x")
            .body(())
            .unwrap()
            .into_parts();
        let mut seen = Vec::new();
        HttpHead::new(&parts).for_each_header("host", &mut |value| {
            seen.push(value.to_vec());
            true
        });
        assert_eq!(seen, [b"a.example:8443"]);
    }
}
