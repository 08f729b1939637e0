//! The spans of one request while it is forwarded.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use http::StatusCode;
use proxy_model::RequestHead;
use proxy_model::compiled::Route;
use tokio::time::Instant;

use super::parent::{TRACEPARENT, TRACESTATE, TraceParent, digits, state_of};
use super::{Decision, SpanKind, SpanValue, TraceSpan, Tracer};
use crate::error::{Cause, ForwardErrorKind, Side};
use crate::head::HeaderMutations;
use crate::live::DestinationState;
use crate::observe::Labels;

/// The flags of a trace that begins here and is recorded: sampled, with a random id.
const RECORDED: u8 = 0b11;

/// The flags of a trace that begins here and is not recorded.
const DROPPED: u8 = 0b10;

/// Longest text of a client in an attribute, in bytes.
const LONGEST: usize = 1024;

/// The spans of a request, or of one attempt of a layer, until they are finished.
pub(crate) struct RequestTrace {
    link: TraceLink,
    /// The span of the request. `None` for an attempt of a layer, and if nothing is recorded.
    request: Option<OpenSpan>,
    /// The id of the caller's span.
    caller: Option<[u8; 8]>,
    is_recorded: bool,
    /// The span of the destination that is tried now.
    attempt: Option<OpenSpan>,
    finished: Vec<TraceSpan>,
    /// The id for the next attempt.
    next: [u8; 8],
    /// The id in the head that was written.
    written: [u8; 8],
    method: &'static str,
    attempts: i64,
}

/// The position of a request in its trace, to which attempts are linked.
#[derive(Clone)]
pub(crate) struct TraceLink {
    tracer: Arc<dyn Tracer>,
    trace_id: [u8; 16],
    /// The span of the request.
    parent: [u8; 8],
    flags: u8,
    state: String,
    /// True if the `tracestate` of the request belongs to no valid trace.
    drops_state: bool,
    /// The same instant on both clocks, to convert one into the other.
    clocks: (SystemTime, Instant),
}

/// A span that has not ended.
struct OpenSpan {
    id: [u8; 8],
    name: String,
    begin: Instant,
    attributes: Vec<(&'static str, SpanValue)>,
    is_error: bool,
}

impl RequestTrace {
    /// Begins the trace of a request. `None` if its fields are forwarded unchanged.
    #[cold]
    pub(crate) fn begin(
        tracer: &Arc<dyn Tracer>,
        head: &impl RequestHead,
        (labels, client): (Labels, Option<SocketAddr>),
        now: Instant,
    ) -> Option<Box<Self>> {
        let parent = TraceParent::of_request(head);
        let trace_id = match parent {
            Some(parent) => parent.trace_id,
            None => random(),
        };
        let is_recorded = match tracer.decide(trace_id, parent.map(TraceParent::is_sampled)) {
            Decision::Record => true,
            // A decision of the caller is forwarded unchanged.
            Decision::Drop if parent.is_none() => false,
            Decision::Drop | Decision::Ignore => return None,
        };
        let state = match (is_recorded, parent) {
            (true, Some(_)) => state_of(head),
            _ => String::new(),
        };
        let link = TraceLink {
            tracer: Arc::clone(tracer),
            trace_id,
            parent: random(),
            flags: match (is_recorded, parent) {
                (true, Some(parent)) => parent.flags | 1,
                (true, None) => RECORDED,
                (false, _) => DROPPED,
            },
            state,
            drops_state: parent.is_none(),
            clocks: (SystemTime::now(), now),
        };
        let request =
            is_recorded.then(|| OpenSpan::of_request(link.parent, head, (labels, client), now));
        Some(Box::new(Self {
            caller: parent.map(|parent| parent.span_id),
            ..Self::linked(link, labels, request)
        }))
    }

    /// Begins the spans of an attempt of a layer.
    pub(crate) fn of_attempt(link: &TraceLink, labels: Labels) -> Box<Self> {
        Box::new(Self::linked(link.clone(), labels, None))
    }

    fn linked(link: TraceLink, labels: Labels, request: Option<OpenSpan>) -> Self {
        let next = random();
        Self {
            is_recorded: link.flags & 1 != 0,
            link,
            request,
            caller: None,
            attempt: None,
            finished: Vec::new(),
            next,
            written: next,
            method: labels.method(),
            attempts: 0,
        }
    }

    /// The position to which attempts of layers are linked.
    pub(crate) fn link(&self) -> TraceLink {
        self.link.clone()
    }

    /// Notes the route that the request takes.
    pub(crate) fn routed(&mut self, route: &Route) {
        let Some(span) = &mut self.request else {
            return;
        };
        if let Some(path) = &route.config().r#match.path {
            span.name = format!("{} {path}", self.method);
            span.set("http.route", path.as_str());
        }
        span.set("proxy.route", route.id().as_str());
    }

    /// Writes the fields for destinations into the changes of a head.
    #[cold]
    pub(crate) fn write(&mut self, edits: &mut HeaderMutations) {
        // Names and values are valid.
        let _ = edits.set(TRACEPARENT, self.position().value());
        if self.link.drops_state {
            let _ = edits.remove(TRACESTATE);
        }
        self.written = self.current();
    }

    /// Writes the current attempt's span into a head that was written for an earlier attempt.
    #[cold]
    pub(crate) fn readdress(&mut self, head: &mut [u8]) {
        if self.written == self.current() {
            return;
        }
        let (before, now) = (digits(self.written), digits(self.current()));
        // Sixteen random digits occur once in a head.
        let place = head
            .windows(before.len())
            .position(|text| text == before.as_bytes());
        if let Some(place) = place {
            head[place..place + now.len()].copy_from_slice(now.as_bytes());
        }
        self.written = self.current();
    }

    /// Begins the attempt at a destination.
    #[cold]
    pub(crate) fn sent_to(&mut self, destination: &DestinationState) {
        self.end_attempt(None, Instant::now());
        let id = std::mem::replace(&mut self.next, random());
        if !self.is_recorded {
            return;
        }
        let mut span = OpenSpan::of_destination(id, self.method.to_owned(), destination);
        span.set("http.request.method", self.method);
        // By OpenTelemetry's conventions only from the second attempt on.
        if self.attempts > 0 {
            span.set("http.request.resend_count", self.attempts);
        }
        self.attempts += 1;
        self.attempt = Some(span);
    }

    /// Ends an attempt after which the request goes to another destination.
    #[cold]
    pub(crate) fn attempt_failed(&mut self, kind: ForwardErrorKind) {
        self.end_attempt(Some(kind), Instant::now());
    }

    /// Notes the time from the head of the request to a connection for it.
    #[cold]
    pub(crate) fn waited(&mut self, waited: Duration) {
        if let Some(request) = &mut self.request {
            let micros = i64::try_from(waited.as_micros()).unwrap_or(i64::MAX);
            request.set("proxy.added_us", micros);
        }
    }

    /// Notes the status of a destination's response.
    #[cold]
    pub(crate) fn answered(&mut self, status: StatusCode) {
        if let Some(attempt) = &mut self.attempt {
            // By OpenTelemetry's conventions 4xx are errors for a client, and none for a server.
            attempt.answered(status, 400);
        }
        self.told(status);
    }

    /// Notes the status that the client gets.
    #[cold]
    pub(crate) fn told(&mut self, status: StatusCode) {
        if let Some(request) = &mut self.request {
            request.answered(status, 500);
        }
    }

    /// Notes the cause of a reply in place of a destination's response.
    #[cold]
    pub(crate) fn replied(&mut self, cause: Cause) {
        if let Some(request) = &mut self.request {
            request.caused(cause);
        }
    }

    /// Ends all spans, and hands them to the tracer.
    #[cold]
    pub(crate) fn end(mut self, error: Option<ForwardErrorKind>, now: Instant) {
        self.end_attempt(error, now);
        if let Some(mut span) = self.request.take() {
            if let Some(kind) = error {
                span.failed(kind);
            }
            let span = self.link.finish(span, self.caller, SpanKind::Server, now);
            self.finished.insert(0, span);
        }
        if !self.finished.is_empty() {
            self.link.tracer.finished(self.finished);
        }
    }

    fn end_attempt(&mut self, error: Option<ForwardErrorKind>, now: Instant) {
        let Some(mut span) = self.attempt.take() else {
            return;
        };
        if let Some(kind) = error {
            span.failed(kind);
        }
        let parent = Some(self.link.parent);
        let span = self.link.finish(span, parent, SpanKind::Client, now);
        self.finished.push(span);
    }

    /// The id by which destinations know their caller.
    fn current(&self) -> [u8; 8] {
        self.attempt
            .as_ref()
            .map_or(self.next, |attempt| attempt.id)
    }

    fn position(&self) -> TraceParent {
        TraceParent {
            trace_id: self.link.trace_id,
            span_id: self.current(),
            flags: self.link.flags,
        }
    }
}

impl TraceLink {
    fn finish(
        &self,
        span: OpenSpan,
        parent: Option<[u8; 8]>,
        kind: SpanKind,
        now: Instant,
    ) -> TraceSpan {
        let (wall, instant) = self.clocks;
        let at = |moment: Instant| wall + moment.saturating_duration_since(instant);
        TraceSpan {
            trace_id: self.trace_id,
            span_id: span.id,
            parent,
            trace_state: self.state.clone(),
            kind,
            name: span.name,
            start: at(span.begin),
            end: at(now.max(span.begin)),
            attributes: span.attributes,
            is_error: span.is_error,
        }
    }
}

impl OpenSpan {
    fn new(id: [u8; 8], name: String, begin: Instant) -> Self {
        Self {
            id,
            name,
            begin,
            attributes: Vec::with_capacity(12),
            is_error: false,
        }
    }

    fn of_request(
        id: [u8; 8],
        head: &impl RequestHead,
        (labels, client): (Labels, Option<SocketAddr>),
        now: Instant,
    ) -> Self {
        let method = labels.method();
        let mut span = Self::new(id, method.to_owned(), now);
        span.set("http.request.method", method);
        if method == Labels::OTHER {
            span.set("http.request.method_original", short(head.method()));
        }
        span.set("url.scheme", if head.is_https() { "https" } else { "http" });
        span.set("url.path", short(head.path()));
        if !head.authority().is_empty() {
            span.set("server.address", short(head.authority()));
        }
        if !labels.protocol().is_empty() {
            span.set("network.protocol.version", labels.protocol());
        }
        if let Some(client) = client {
            // A client over IPv4 has a mapped address on a socket for IPv6.
            span.set("client.address", client.ip().to_canonical().to_string());
            span.set("client.port", i64::from(client.port()));
        }
        span
    }

    fn of_destination(id: [u8; 8], name: String, destination: &DestinationState) -> Self {
        let address = destination.address();
        let mut span = Self::new(id, name, Instant::now());
        span.set("server.address", address.host());
        span.set("server.port", i64::from(address.port()));
        span.set("proxy.cluster", destination.cluster().as_str());
        span.set("proxy.destination", destination.id().as_str());
        span
    }

    /// Sets an attribute, in the place of an earlier value.
    fn set(&mut self, name: &'static str, value: impl Into<SpanValue>) {
        let value = value.into();
        match self.attributes.iter_mut().find(|(known, _)| *known == name) {
            Some((_, known)) => *known = value,
            None => self.attributes.push((name, value)),
        }
    }

    /// Notes a status, which is an error from `errors` on.
    fn answered(&mut self, status: StatusCode, errors: u16) {
        let status = status.as_u16();
        self.set("http.response.status_code", i64::from(status));
        self.is_error = status >= errors;
        match self.is_error {
            true => self.set("error.type", status.to_string()),
            // An earlier status may have been an error.
            false => self.attributes.retain(|(name, _)| *name != "error.type"),
        }
    }

    fn caused(&mut self, cause: Cause) {
        self.set("proxy.cause", cause.as_str());
        self.set("proxy.side", cause.side().as_str());
    }

    fn failed(&mut self, kind: ForwardErrorKind) {
        self.set("error.type", kind.as_str());
        self.caused(kind.cause());
        // A client that disconnects is no error of the proxy.
        self.is_error = kind.side() != Side::Client;
    }
}

/// Hands the span of a finished health check to the tracer, if it is recorded, as a trace of its own.
pub(crate) fn probed(
    tracer: &Arc<dyn Tracer>,
    destination: &DestinationState,
    result: Result<StatusCode, &str>,
    elapsed: Duration,
) {
    let trace_id = random();
    if tracer.decide(trace_id, None) != Decision::Record {
        return;
    }
    let mut span = OpenSpan::of_destination(random(), "health check".to_owned(), destination);
    match result {
        Ok(status) => span.answered(status, 300),
        Err(reason) => {
            span.set("error.type", reason);
            span.is_error = true;
        }
    }
    let link = TraceLink {
        tracer: Arc::clone(tracer),
        trace_id,
        parent: span.id,
        flags: RECORDED,
        state: String::new(),
        drops_state: false,
        // The span is made when the check has ended.
        clocks: (SystemTime::now() - elapsed, span.begin),
    };
    let end = span.begin + elapsed;
    let span = link.finish(span, None, SpanKind::Client, end);
    tracer.finished(vec![span]);
}

/// The beginning of a client's text, which may be long.
fn short(text: &str) -> &str {
    let mut end = LONGEST.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// A random id, which is not zero.
pub(super) fn random<const N: usize>() -> [u8; N] {
    let mut id = [0; N];
    while id == [0; N] {
        fastrand::fill(&mut id);
    }
    id
}

impl fmt::Debug for RequestTrace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RequestTrace").finish_non_exhaustive()
    }
}
