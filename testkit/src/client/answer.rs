use bytes::{Bytes, BytesMut};
use http::{HeaderMap, Response, StatusCode, Version};
use http_body_util::BodyExt;
use hyper::body::Incoming;

use super::ClientError;

/// Maximum length of a collected body.
const BODY_LIMIT: usize = 64 << 20;

/// A complete response.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Answer {
    /// The status.
    pub status: StatusCode,
    /// The version of the server.
    pub version: Version,
    /// Interim responses (1xx) before it, in order.
    pub interim: Vec<Interim>,
    /// Header fields.
    pub headers: HeaderMap,
    /// The body.
    pub body: Bytes,
    /// Trailer fields, if any.
    pub trailers: Option<HeaderMap>,
}

/// An interim response.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Interim {
    /// The status, 1xx.
    pub status: StatusCode,
    /// Header fields.
    pub headers: HeaderMap,
}

impl Answer {
    /// The body as text; bytes that are not UTF-8 are replaced.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// Parses the body as JSON, such as an [`Echo`](crate::origin::Echo).
    ///
    /// # Panics
    ///
    /// Panics if the body does not fit; the message shows the status and the body.
    #[track_caller]
    pub fn json<T: serde::de::DeserializeOwned>(&self) -> T {
        match serde_json::from_slice(&self.body) {
            Ok(value) => value,
            Err(error) => panic!(
                "not the JSON expected: {error}: {} {}",
                self.status,
                self.text()
            ),
        }
    }

    /// The first value of a header field; `None` if it is missing or not visible ASCII.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }
}

/// Reads a response to its end.
pub(super) async fn collect(
    response: Response<Incoming>,
    interim: Vec<Interim>,
) -> Result<Answer, ClientError> {
    let (head, mut incoming) = response.into_parts();
    let mut body = BytesMut::new();
    let mut trailers: Option<HeaderMap> = None;
    let mut broken = None;
    while let Some(frame) = incoming.frame().await {
        match frame.map(http_body::Frame::into_data) {
            Ok(Ok(data)) if body.len() + data.len() > BODY_LIMIT => {
                return Err(ClientError::TooLong);
            }
            Ok(Ok(data)) => body.extend_from_slice(&data),
            Ok(Err(other)) => trailers = other.into_trailers().ok(),
            Err(error) => {
                broken = Some(error);
                break;
            }
        }
    }
    let answer = Answer {
        status: head.status,
        version: head.version,
        interim,
        headers: head.headers,
        body: body.freeze(),
        trailers,
    };
    match broken {
        None => Ok(answer),
        Some(source) => Err(ClientError::Truncated {
            received: Box::new(answer),
            source,
        }),
    }
}
