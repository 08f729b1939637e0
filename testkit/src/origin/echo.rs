use std::fmt::Write as _;

use bytes::Buf;
use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderValue, Request, Response};
use http_body_util::BodyExt;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::{ConnectionInfo, Incoming};
use crate::body::{self, Body};

/// Maximum length of a body that is echoed as text; longer ones have length and digest only.
const TEXT_LIMIT: usize = 64 * 1024;

/// A request that an echo origin received, as parsed by hyper.
///
/// ```
/// use testkit::client::Connection;
/// use testkit::origin::{Echo, Origin};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), testkit::client::ClientError> {
/// let origin = Origin::echo();
/// let mut client = Connection::http2(origin.addr()).await?;
/// let request = client.request("PUT", "/a?b=c").header("x-id", "7");
/// let request = request.body(testkit::body::full("hello")).unwrap();
/// let echo: Echo = client.send(request).await?.json();
/// assert_eq!((echo.method.as_str(), echo.path_and_query()), ("PUT", "/a?b=c"));
/// assert_eq!(echo.header("x-id"), ["7"]);
/// assert_eq!(echo.body_text.as_deref(), Some("hello"));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Echo {
    /// The method.
    pub method: String,
    /// The target, with scheme and authority over HTTP/2 or in absolute form.
    pub uri: String,
    /// `HTTP/1.0`, `HTTP/1.1` or `HTTP/2.0`.
    pub version: String,
    /// Header fields: values of one name in their order on the wire, names in the order of their
    /// first value. Names are in lower case; each byte of a value is one character (ISO 8859-1).
    /// For the exact bytes, use a [`RawOrigin`](crate::raw::RawOrigin).
    pub headers: Vec<(String, String)>,
    /// Trailer fields, in the same form.
    pub trailers: Vec<(String, String)>,
    /// Bytes of the body.
    pub body_length: u64,
    /// SHA-256 of the body in lower-case hex.
    pub body_sha256: String,
    /// The body, if it is at most 64 KiB of UTF-8.
    pub body_text: Option<String>,
    /// The error that ended the body early.
    pub body_error: Option<String>,
    /// The index of the connection, from 0.
    pub connection: u64,
    /// The client's address.
    pub peer: String,
    /// The server name sent by SNI.
    pub server_name: Option<String>,
    /// The protocol that ALPN chose.
    pub alpn: Option<String>,
}

impl Echo {
    /// All values of a header field, ignoring the case of its name.
    pub fn header(&self, name: &str) -> Vec<&str> {
        self.headers
            .iter()
            .filter(|(other, _)| other.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.as_str())
            .collect()
    }

    /// Path and query of [`uri`](Self::uri), without scheme and authority.
    pub fn path_and_query(&self) -> &str {
        let Some((_, rest)) = self.uri.split_once("://") else {
            return &self.uri;
        };
        rest.find(['/', '?']).map_or("/", |start| &rest[start..])
    }

    /// The SHA-256 in the form of [`body_sha256`](Self::body_sha256), for comparison.
    pub fn sha256(bytes: &[u8]) -> String {
        hex(&Sha256::digest(bytes))
    }
}

pub(super) async fn answer(request: Request<Incoming>) -> Response<Body> {
    let (head, incoming) = request.into_parts();
    let info = head
        .extensions
        .get::<ConnectionInfo>()
        .expect("every connection adds its own");
    let received = receive(incoming).await;
    let echo = Echo {
        method: head.method.to_string(),
        uri: head.uri.to_string(),
        version: format!("{:?}", head.version),
        headers: listed(&head.headers),
        trailers: received.trailers.as_ref().map(listed).unwrap_or_default(),
        body_length: received.length,
        body_sha256: hex(&received.digest.finalize()),
        body_text: received.text.and_then(|text| String::from_utf8(text).ok()),
        body_error: received.error,
        connection: info.id,
        peer: info.peer.to_string(),
        server_name: info.server_name.clone(),
        alpn: info.alpn.clone(),
    };
    let json = serde_json::to_vec(&echo).expect("strings and numbers are always JSON");
    let mut answer = Response::new(body::full(json));
    let json = HeaderValue::from_static("application/json");
    answer.headers_mut().insert(CONTENT_TYPE, json);
    answer
}

struct Received {
    length: u64,
    digest: Sha256,
    text: Option<Vec<u8>>,
    trailers: Option<HeaderMap>,
    error: Option<String>,
}

/// Reads a body of any length in constant memory.
async fn receive(mut incoming: Incoming) -> Received {
    let mut received = Received {
        length: 0,
        digest: Sha256::new(),
        text: Some(Vec::new()),
        trailers: None,
        error: None,
    };
    while let Some(frame) = incoming.frame().await {
        match frame.map(http_body::Frame::into_data) {
            Ok(Ok(data)) => {
                received.length += data.remaining() as u64;
                received.digest.update(&data);
                received.text = received
                    .text
                    .filter(|text| text.len() + data.len() <= TEXT_LIMIT)
                    .map(|mut text| {
                        text.extend_from_slice(&data);
                        text
                    });
            }
            Ok(Err(other)) => received.trailers = other.into_trailers().ok(),
            Err(error) => {
                received.error = Some(error.to_string());
                break;
            }
        }
    }
    received
}

fn listed(headers: &HeaderMap) -> Vec<(String, String)> {
    headers
        .iter()
        .map(|(name, value)| (name.to_string(), crate::latin1(value.as_bytes())))
        .collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut hex, byte| {
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}
