//! OTLP over HTTP and over gRPC.
//!
//! Both are a POST of reqwest: an export is a call with one message each way, which in gRPC is a body with a prefix of
//! five bytes, and a status in the trailers.

use std::error::Error;
use std::io::Write;
use std::time::Duration;

use bytes::{BufMut, Bytes, BytesMut};
use discovery_http::tls;
use discovery_http::{ReqwestTransport, TransportOptions};
use flate2::Compression;
use flate2::write::GzEncoder;
use http::header::{CONTENT_ENCODING, CONTENT_TYPE, RETRY_AFTER, TE};
use http::{HeaderMap, HeaderValue, StatusCode};
use http_body_util::{BodyExt, Limited};
use prost::Message;

use crate::messages::ExportTraceServiceResponse;
use crate::settings::{CollectorSettings, Protocol};

/// Longest response that is read, in bytes.
const LONGEST_RESPONSE: usize = 64 << 10;

/// Longest pause that a collector can request.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// The error of setting up the export.
#[derive(Debug, thiserror::Error)]
#[error("the export cannot be set up: {0}")]
pub struct SetupError(String);

/// The client of one collector.
pub(crate) struct Transport {
    client: reqwest::Client,
    endpoint: String,
    protocol: Protocol,
    headers: HeaderMap,
    is_compressed: bool,
    timeout: Duration,
}

/// The failure of a delivery.
pub(crate) struct Refused {
    pub(crate) reason: String,
    /// `Some` if it may be sent again; after this time, if the collector named one.
    pub(crate) again: Option<Option<Duration>>,
}

impl Transport {
    pub(crate) fn new(settings: &CollectorSettings) -> Result<Self, SetupError> {
        let provider = tls::provider();
        let verifier = match (
            &settings.certificate,
            settings.endpoint.starts_with("https:"),
        ) {
            (Some(path), _) => {
                let authorities = tls::file::certificates(path).map_err(|error| setup(&error))?;
                tls::authorities_verifier(authorities, &provider)
            }
            (None, true) => tls::system_verifier(&provider),
            (None, false) => Ok(tls::rejecting_verifier(&provider)),
        };
        let verifier = verifier.map_err(|error| setup(&error))?;
        let identity = match &settings.identity {
            Some((certificate, key)) => Some((
                tls::file::certificates(certificate).map_err(|error| setup(&error))?,
                tls::file::key(key).map_err(|error| setup(&error))?,
            )),
            None => None,
        };
        let tls =
            tls::client_config(provider, verifier, identity).map_err(|error| setup(&error))?;
        let agent = concat!("proxy-telemetry/", env!("CARGO_PKG_VERSION"));
        let client = match settings.protocol {
            Protocol::Http => {
                let options = TransportOptions::new(agent);
                let transport = ReqwestTransport::new(tls, &options);
                transport.map_err(|error| setup(&error))?.client().clone()
            }
            Protocol::Grpc => grpc_client(tls, agent).map_err(|error| setup(&error))?,
        };
        Ok(Self {
            client,
            endpoint: settings.endpoint.clone(),
            protocol: settings.protocol,
            headers: settings.headers.clone(),
            is_compressed: settings.is_compressed,
            timeout: settings.timeout,
        })
    }

    /// The URL that batches are sent to.
    pub(crate) fn endpoint(&self) -> &str {
        &self.endpoint
    }

    /// The body for a message.
    pub(crate) fn body(&self, message: &[u8]) -> Bytes {
        let packed = self.is_compressed.then(|| gzip(message));
        let content = packed.as_deref().unwrap_or(message);
        match self.protocol {
            Protocol::Http => Bytes::copy_from_slice(content),
            Protocol::Grpc => {
                let mut body = BytesMut::with_capacity(content.len() + 5);
                body.put_u8(u8::from(self.is_compressed));
                // Batches are far smaller than 4 GiB.
                body.put_u32(u32::try_from(content.len()).unwrap_or(u32::MAX));
                body.put_slice(content);
                body.freeze()
            }
        }
    }

    /// Sends a body. Returns the number of spans or data points that the collector has rejected.
    pub(crate) async fn send(&self, body: Bytes) -> Result<usize, Refused> {
        let mut headers = self.headers.clone();
        let (content, encoding) = match self.protocol {
            Protocol::Http => ("application/x-protobuf", CONTENT_ENCODING.as_str()),
            Protocol::Grpc => ("application/grpc", "grpc-encoding"),
        };
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(content));
        if self.protocol == Protocol::Grpc {
            headers.insert(TE, HeaderValue::from_static("trailers"));
        }
        if self.is_compressed {
            let encoding = http::HeaderName::from_static(encoding);
            headers.insert(encoding, HeaderValue::from_static("gzip"));
        }
        let request = self
            .client
            .post(&self.endpoint)
            .headers(headers)
            .timeout(self.timeout)
            .body(body);
        let response = request.send().await.map_err(|error| unreached(&error))?;
        let (head, body) = http::Response::from(response).into_parts();
        if head.status != StatusCode::OK {
            return Err(rejected(head.status, &head.headers));
        }
        let body = Limited::new(body, LONGEST_RESPONSE).collect().await;
        let body = body.map_err(|error| Refused {
            reason: chain(&*error),
            again: Some(None),
        })?;
        let trailers = body.trailers().cloned().unwrap_or_default();
        let body = body.to_bytes();
        match self.protocol {
            Protocol::Http => Ok(rejected_parts(&body)),
            Protocol::Grpc => {
                called(&head.headers, &trailers)?;
                Ok(rejected_parts(body.get(5..).unwrap_or_default()))
            }
        }
    }
}

/// A client that speaks HTTP/2 alone, which gRPC needs, in cleartext as well.
fn grpc_client(
    mut tls: rustls::ClientConfig,
    agent: &str,
) -> Result<reqwest::Client, reqwest::Error> {
    tls.alpn_protocols = vec![b"h2".to_vec()];
    reqwest::Client::builder()
        .tls_backend_preconfigured(tls)
        .redirect(reqwest::redirect::Policy::none())
        .retry(reqwest::retry::never())
        .referer(false)
        .user_agent(agent)
        .connect_timeout(Duration::from_secs(10))
        .http2_prior_knowledge()
        .no_proxy()
        .build()
}

fn gzip(message: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    // Writing to memory does not fail.
    let _ = encoder.write_all(message);
    encoder.finish().unwrap_or_default()
}

/// The response to metrics has the same form.
fn rejected_parts(body: &[u8]) -> usize {
    let response = ExportTraceServiceResponse::decode(body).unwrap_or_default();
    let rejected = response.partial_success.map(|part| part.rejected_spans);
    rejected.map_or(0, |rejected| usize::try_from(rejected).unwrap_or(0))
}

/// The failure of a response with this status. OTLP names those after which a batch may be sent again.
fn rejected(status: StatusCode, headers: &HeaderMap) -> Refused {
    let may_repeat = matches!(status.as_u16(), 429 | 502..=504);
    let seconds = headers
        .get(RETRY_AFTER)
        .and_then(|value| value.to_str().ok()?.trim().parse().ok());
    let pause = seconds.map(|seconds| Duration::from_secs(seconds).min(LONGEST_PAUSE));
    Refused {
        reason: format!("it answered {status}"),
        again: may_repeat.then_some(pause),
    }
}

/// The result of a call of gRPC, whose status is in the trailers, or in the head of a response without a body.
fn called(head: &HeaderMap, trailers: &HeaderMap) -> Result<(), Refused> {
    const OK: &str = "0";
    let field = |name: &str| {
        let value = trailers.get(name).or_else(|| head.get(name))?;
        value.to_str().ok()
    };
    let status = field("grpc-status").unwrap_or("missing");
    if status == OK {
        return Ok(());
    }
    // Cancelled, deadline exceeded, aborted, out of range, unavailable, data loss.
    let may_repeat = matches!(status, "1" | "4" | "10" | "11" | "14" | "15");
    let message: String = field("grpc-message")
        .unwrap_or("")
        .chars()
        .take(200)
        .collect();
    Err(Refused {
        reason: format!("it answered with the gRPC status {status}: {message}"),
        again: may_repeat.then_some(None),
    })
}

fn unreached(error: &reqwest::Error) -> Refused {
    Refused {
        reason: chain(error),
        again: Some(None),
    }
}

/// An error with its causes.
fn chain(error: &(dyn Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text
}

fn setup(error: &(dyn Error + 'static)) -> SetupError {
    SetupError(chain(error))
}
