//! Spans of requests and health checks, for a program that traces them.
//!
//! A [`Tracer`] is given to the [builder](crate::ProxyBuilder::tracer). It decides which requests are recorded, and
//! takes their spans when they have ended: one of kind [`Server`](SpanKind::Server) for a request, and below it one of
//! kind [`Client`](SpanKind::Client) for each destination that was tried. Callers and destinations take part by the
//! fields `traceparent` and `tracestate` of W3C Trace Context. Without a tracer both are forwarded as they came.
//!
//! A poll of a source of configuration is a trace of one span, if the program calls [`trace_cycles`].
//!
//! Names and attributes follow OpenTelemetry's conventions for HTTP; those of the proxy begin with `proxy.`. Queries
//! are left out, since secrets are common in them.

mod discovery;
mod parent;
mod request;
#[cfg(test)]
mod tests;

use std::time::SystemTime;

pub use self::discovery::trace_cycles;
pub(crate) use self::request::{RequestTrace, TraceLink, probed};

/// The decisions of a program about the tracing of requests, and the receiver of their spans.
///
/// Requests wait for both methods, so neither may block.
pub trait Tracer: Send + Sync + 'static {
    /// Decides about a request. `caller`: the decision of the request's caller, if it has a valid `traceparent`.
    /// `trace_id`: the trace of the caller, otherwise a random one.
    fn decide(&self, trace_id: [u8; 16], caller: Option<bool>) -> Decision;

    /// Takes finished spans of one trace.
    fn finished(&self, spans: Vec<TraceSpan>);
}

/// The decision about tracing a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Decision {
    /// Spans are recorded, and the fields for destinations mark the trace as sampled.
    Record,
    /// The request is not recorded, and the fields for destinations mark the trace as not sampled. A decision of
    /// the caller is forwarded unchanged.
    Drop,
    /// The request is not recorded, and the fields are forwarded unchanged.
    Ignore,
}

/// A finished span.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct TraceSpan {
    /// The trace that the span belongs to.
    pub trace_id: [u8; 16],
    /// The span's own id.
    pub span_id: [u8; 8],
    /// The id of the span that caused it.
    pub parent: Option<[u8; 8]>,
    /// The value of `tracestate`.
    pub trace_state: String,
    /// The role of the span.
    pub kind: SpanKind,
    /// A name without values of single requests.
    pub name: String,
    /// The beginning.
    pub start: SystemTime,
    /// The end.
    pub end: SystemTime,
    /// Names and values.
    pub attributes: Vec<(&'static str, SpanValue)>,
    /// True if it ended with an error.
    pub is_error: bool,
}

/// The role of a span in its trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SpanKind {
    /// A request of a client.
    Server,
    /// A request to a destination.
    Client,
    /// Work of the proxy itself.
    Internal,
}

/// The value of an attribute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SpanValue {
    /// A text.
    Text(String),
    /// A number.
    Integer(i64),
}

impl From<String> for SpanValue {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<&str> for SpanValue {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<i64> for SpanValue {
    fn from(number: i64) -> Self {
        Self::Integer(number)
    }
}
