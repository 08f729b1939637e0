//! Values of `X-Forwarded-*` and `Forwarded`.

use std::fmt::Write;
use std::net::{IpAddr, SocketAddr};

use http::HeaderValue;
use proxy_model::RequestHead;
use proxy_model::matching::RequestHost;
use proxy_model::transform::{Forwarded, NodeFormat, NodeName, NodePort, XForwardedPart};

use crate::connection::ConnectionInfo;
use crate::http1::FieldValue;

/// The origin of a request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Origin<'a> {
    connection: ConnectionInfo,
    authority: &'a str,
    is_https: bool,
}

impl<'a> Origin<'a> {
    /// Returns the origin of the request with this head, which arrived over `connection`.
    pub(crate) fn new<H: RequestHead>(head: &'a H, connection: ConnectionInfo) -> Self {
        Self {
            connection,
            authority: head.authority(),
            is_https: head.is_https(),
        }
    }

    fn proto(&self) -> &'static str {
        if self.is_https { "https" } else { "http" }
    }

    /// Host and port in ASCII.
    fn host(&self) -> Option<String> {
        (!self.authority.is_empty()).then(|| to_ascii(self.authority))
    }

    /// The certificate that the client presented, in base64.
    pub(crate) fn client_certificate(&self) -> Option<HeaderValue> {
        Some(self.connection.client_certificate()?.value())
    }

    /// The value of `Forwarded`, if anything is known.
    pub(crate) fn forwarded(&self, told: &Forwarded) -> Option<HeaderValue> {
        let mut parts = Vec::new();
        if told.proto() {
            parts.push(format!("proto={}", self.proto()));
        }
        if told.host()
            && let Some(host) = self.host()
        {
            // Quoted, since a port has a colon (RFC 7239 section 4).
            parts.push(format!("host=\"{host}\""));
        }
        if let Some(format) = told.r#for() {
            parts.push(format!("for={}", node(format, self.connection.remote)));
        }
        if let Some(format) = told.by() {
            parts.push(format!("by={}", node(format, self.connection.local)));
        }
        if parts.is_empty() {
            return None;
        }
        HeaderValue::from_str(&parts.join(";")).ok()
    }
}

/// The parts of a request's origin, for a head that is written from bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OriginParts<'a> {
    /// The client's address, without port.
    pub(crate) remote: Option<FieldValue<'a>>,
    /// Host and port as the client named them.
    pub(crate) authority: Option<FieldValue<'a>>,
    pub(crate) is_https: bool,
}

impl<'a> OriginParts<'a> {
    /// The value of an `X-Forwarded-*` header, if it is known.
    #[inline]
    pub(crate) fn get(&self, part: XForwardedPart) -> Option<FieldValue<'a>> {
        const HTTP: FieldValue<'static> = FieldValue::from_static("http");
        const HTTPS: FieldValue<'static> = FieldValue::from_static("https");
        match part {
            XForwardedPart::For => self.remote,
            XForwardedPart::Host => self.authority,
            XForwardedPart::Proto => Some(if self.is_https { HTTPS } else { HTTP }),
            // The proxy serves whole paths: nothing was taken off before it saw the request.
            XForwardedPart::Prefix => None,
        }
    }
}

/// A node of `Forwarded` (RFC 7239 section 6). It is quoted if it holds a colon.
fn node(format: NodeFormat, address: Option<SocketAddr>) -> String {
    let mut node = match (format.name, address) {
        (NodeName::Random, _) => obfuscated(),
        (NodeName::Unknown, _) | (NodeName::Ip, None) => "unknown".to_owned(),
        (NodeName::Ip, Some(address)) => match address.ip().to_canonical() {
            IpAddr::V4(ip) => ip.to_string(),
            IpAddr::V6(ip) => format!("[{ip}]"),
        },
    };
    match format.port {
        NodePort::Absent => {}
        NodePort::Random => {
            node.push(':');
            node.push_str(&obfuscated());
        }
        NodePort::Port => {
            // Port 0 is that of an address without a known port.
            if let Some(port) = address.map(|address| address.port()).filter(|p| *p != 0) {
                write!(node, ":{port}").expect("writing to a string does not fail");
            }
        }
    }
    // A colon is not allowed in a token (RFC 7239 section 6).
    if node.contains(':') {
        node = format!("\"{node}\"");
    }
    node
}

/// Returns an identifier that reveals nothing (RFC 7239 section 6.3), different each time.
fn obfuscated() -> String {
    let mut text = String::with_capacity(10);
    text.push('_');
    text.extend((0..9).map(|_| fastrand::alphanumeric()));
    text
}

/// Converts host and port to ASCII. A text that is not a name stays unchanged.
pub(crate) fn to_ascii(authority: &str) -> String {
    if authority.is_ascii() {
        return authority.to_owned();
    }
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|b| b.is_ascii_digit()) => (host, Some(port)),
        _ => (authority, None),
    };
    let host = RequestHost::parse(host, false);
    match port {
        Some(port) => format!("{}:{port}", host.name()),
        None => host.name().to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_become_ascii_and_ports_stay() {
        for (authority, expected) in [
            ("ho本st", "xn--host-6j1i"),
            ("ho本st:80", "xn--host-6j1i:80"),
            ("[::1]:80", "[::1]:80"),
            ("myHost:80", "myHost:80"),
        ] {
            assert_eq!(to_ascii(authority), expected);
        }
    }
}
