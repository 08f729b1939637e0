//! A collector that decodes with the official definitions, over HTTP and gRPC.

use std::io::Read;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use flate2::read::GzDecoder;
use http::{HeaderMap, HeaderValue, Response, StatusCode};
use http_body_util::BodyExt;
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::{
    ExportTracePartialSuccess, ExportTraceServiceRequest, ExportTraceServiceResponse,
};
use opentelemetry_proto::tonic::trace::v1::Span;
use parking_lot::Mutex;
use prost::Message;
use testkit::body;
use testkit::origin::Origin;

/// The reaction to a batch.
#[derive(Clone, Copy)]
pub(super) enum Reply {
    Accept,
    /// The same batch may come again at once.
    Busy,
    /// The batch is not wanted.
    Reject,
    Hang,
}

/// A batch as it arrived.
#[derive(Clone)]
pub(super) struct Received {
    pub(super) path: String,
    pub(super) headers: HeaderMap,
    /// The spans of a batch; empty for metrics.
    pub(super) message: ExportTraceServiceRequest,
    /// The metrics of a message.
    pub(super) metrics: Option<ExportMetricsServiceRequest>,
    is_accepted: bool,
}

pub(super) struct Collector {
    origin: Origin,
    received: Arc<Mutex<Vec<Received>>>,
}

impl Collector {
    /// Starts one that reacts to its batches, counted from 0, as `reply` says.
    pub(super) async fn start(reply: fn(usize) -> Reply) -> Self {
        let received: Arc<Mutex<Vec<Received>>> = Arc::default();
        let all = Arc::clone(&received);
        let origin = Origin::start(move |request: http::Request<_>| {
            let all = Arc::clone(&all);
            async move {
                let (head, body) = request.into_parts();
                let bytes = BodyExt::collect(body).await.unwrap().to_bytes();
                let is_grpc = head.headers["content-type"] == "application/grpc";
                let content = content(&head.headers, &bytes, is_grpc);
                let is_metrics = head.uri.path().to_lowercase().contains("metrics");
                let (message, metrics) = match is_metrics {
                    true => (
                        ExportTraceServiceRequest::default(),
                        Some(decoded(&content)),
                    ),
                    false => (decoded(&content), None),
                };
                let reply = reply(all.lock().len());
                all.lock().push(Received {
                    path: head.uri.path().to_owned(),
                    headers: head.headers,
                    message,
                    metrics,
                    is_accepted: matches!(reply, Reply::Accept),
                });
                match reply {
                    Reply::Hang => std::future::pending().await,
                    reply if is_grpc => call(reply),
                    reply => answer(reply),
                }
            }
        });
        Self { origin, received }
    }

    pub(super) fn url(&self) -> String {
        self.origin.url()
    }

    pub(super) fn requests(&self) -> Vec<Received> {
        self.received.lock().clone()
    }

    /// The spans of batches that were accepted.
    pub(super) fn spans(&self) -> Vec<Span> {
        let requests = self.requests().into_iter();
        let accepted = requests.filter(|request| request.is_accepted);
        let resources = accepted.flat_map(|request| request.message.resource_spans);
        let scopes = resources.flat_map(|resource| resource.scope_spans);
        scopes.flat_map(|scope| scope.spans).collect()
    }

    pub(super) async fn wait_for_spans(&self, count: usize) {
        let enough = async {
            while self.spans().len() < count {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        let waited = tokio::time::timeout(testkit::time::GUARD, enough).await;
        waited.expect("the spans arrive");
    }
}

fn decoded<M: Message + Default>(content: &[u8]) -> M {
    M::decode(content).unwrap()
}

fn content(headers: &HeaderMap, bytes: &Bytes, is_grpc: bool) -> Vec<u8> {
    let (packed, content) = match is_grpc {
        true => {
            assert_eq!(headers["te"], "trailers");
            let length = u32::from_be_bytes(bytes[1..5].try_into().unwrap());
            assert_eq!(bytes.len() - 5, length as usize);
            let is_packed = bytes[0] == 1;
            assert_eq!(is_packed, headers.contains_key("grpc-encoding"));
            (is_packed, &bytes[5..])
        }
        false => {
            assert_eq!(headers["content-type"], "application/x-protobuf");
            (headers.contains_key("content-encoding"), &bytes[..])
        }
    };
    let mut plain = Vec::new();
    match packed {
        true => drop(GzDecoder::new(content).read_to_end(&mut plain).unwrap()),
        false => plain.extend_from_slice(content),
    }
    plain
}

fn success(reply: Reply) -> Vec<u8> {
    let response = ExportTraceServiceResponse {
        partial_success: matches!(reply, Reply::Reject).then(|| ExportTracePartialSuccess {
            rejected_spans: 2,
            error_message: "not wanted".to_owned(),
        }),
    };
    response.encode_to_vec()
}

/// The answer over HTTP. What is not wanted is told in a response of success.
fn answer(reply: Reply) -> Response<body::Body> {
    let mut response = Response::new(body::full(success(reply)));
    if matches!(reply, Reply::Busy) {
        *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
    }
    response
}

/// The answer of gRPC.
fn call(reply: Reply) -> Response<body::Body> {
    let status = match reply {
        Reply::Busy => "14",
        Reply::Reject => "3",
        Reply::Accept | Reply::Hang => "0",
    };
    let mut message = vec![0; 5];
    message.extend(success(Reply::Accept));
    message[4] = u8::try_from(message.len() - 5).unwrap();
    let mut trailers = HeaderMap::new();
    trailers.insert("grpc-status", HeaderValue::from_static(status));
    let mut response = Response::new(body::with_trailers(message, trailers));
    let content = HeaderValue::from_static("application/grpc");
    response.headers_mut().insert("content-type", content);
    response
}
