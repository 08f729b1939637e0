//! A response body in frames.

use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::{HeaderMap, StatusCode};

use super::failure::ResponseFailure;
use crate::filter::TrailerChanges;
use crate::http1::{Method, PooledTable, RawResponse};
use crate::response::TrailerRules;
use crate::transform::CompiledTransforms;
use crate::upstream::{Http1Body, Http1Connection};

/// A response body whose frames are handed to a client one at a time.
pub(crate) struct Incoming {
    /// The body to read.
    body: Http1Body,
    /// True if the destination keeps its connection open.
    is_persistent: bool,
    /// Body bytes received but not sent.
    pub(crate) data: Bytes,
    /// Trailers that were not sent.
    pub(crate) trailers: Option<Box<HeaderMap>>,
    /// Changes of trailers that were not received yet.
    rules: TrailerRules,
    /// Body bytes received.
    received: u64,
    /// Body bytes already counted for the destination.
    counted: u64,
    /// Bytes that `data` keeps in memory beyond itself.
    #[cfg(all(feature = "http2", feature = "server"))]
    pub(crate) behind: u32,
}

impl Incoming {
    /// The body of a response with this status. `content`: all of it, if that was received with the head. `table` is
    /// that of the head, or any other one. Without `cx` the rest is not read yet.
    ///
    /// # Errors
    ///
    /// The body is malformed from its start: the client can still get an error.
    pub(crate) fn begin(
        (response, status): (&RawResponse, StatusCode),
        content: Option<Bytes>,
        table: PooledTable,
        rules: TrailerRules,
        connection: &mut Http1Connection,
        cx: Option<&mut Context<'_>>,
    ) -> Result<Self, ResponseFailure> {
        if let Some(content) = content {
            return Self::of((response, status), Http1Body::read(), content, rules);
        }
        let body = Http1Body::new(response, table, connection);
        let mut incoming = Self::of((response, status), body, Bytes::new(), rules)?;
        let Some(cx) = cx else { return Ok(incoming) };
        match incoming.poll_read(connection, cx) {
            Poll::Ready(Err(ResponseFailure::Trailers)) => Err(ResponseFailure::Extension(status)),
            Poll::Ready(Err(_)) => Err(ResponseFailure::BrokenBody(status)),
            Poll::Ready(Ok(())) | Poll::Pending => Ok(incoming),
        }
    }

    fn of(
        (response, status): (&RawResponse, StatusCode),
        body: Http1Body,
        data: Bytes,
        rules: TrailerRules,
    ) -> Result<Self, ResponseFailure> {
        let mut incoming = Self {
            is_persistent: response.is_persistent(),
            body,
            received: data.len() as u64,
            counted: 0,
            #[cfg(all(feature = "http2", feature = "server"))]
            behind: 0,
            data,
            trailers: None,
            rules,
        };
        match incoming.add_trailers() {
            Ok(()) => Ok(incoming),
            Err(_) => Err(ResponseFailure::Extension(status)),
        }
    }

    /// Returns the body bytes received since the last call.
    pub(crate) fn take_uncounted(&mut self) -> u64 {
        let before = std::mem::replace(&mut self.counted, self.received);
        self.received - before
    }

    /// The body bytes that were received and sent.
    pub(crate) fn sent(&self) -> u64 {
        self.received - self.data.len() as u64
    }

    /// Returns true if the body was read to its end.
    pub(crate) fn has_ended(&self) -> bool {
        self.body.has_ended()
    }

    /// Returns true if only the end is left to send.
    pub(crate) fn has_all(&self) -> bool {
        self.body.has_ended() && self.data.is_empty() && self.trailers.is_none()
    }

    /// Returns true if the destination keeps its connection open, and the body was read to its end.
    pub(crate) fn is_persistent(&self) -> bool {
        self.is_persistent && self.body.has_ended()
    }

    /// Reads the next part; ready when a part or the end has arrived.
    pub(crate) fn poll_read(
        &mut self,
        connection: &mut Http1Connection,
        cx: &mut Context<'_>,
    ) -> Poll<Result<(), ResponseFailure>> {
        match ready!(self.body.poll_frame(connection, cx)) {
            Some(Ok(frame)) => match frame.into_data() {
                Ok(data) => {
                    self.received += data.len() as u64;
                    self.data = data;
                    #[cfg(all(feature = "http2", feature = "server"))]
                    {
                        self.behind = connection.input.take_given();
                    }
                }
                Err(frame) => {
                    let mut trailers = frame.into_trailers().unwrap_or_default();
                    // Taken, so that `add_trailers` does not apply them a second time.
                    self.change(&mut trailers)?;
                    self.trailers = (!trailers.is_empty()).then(|| Box::new(trailers));
                }
            },
            Some(Err(error)) => {
                tracing::debug!(target: crate::observe::targets::REQUEST, %error, "the response broke off");
                return Poll::Ready(Err(match error.is_malformed() {
                    true => ResponseFailure::MalformedBody("its body is malformed"),
                    false => ResponseFailure::Destination("its body broke off"),
                }));
            }
            None => {}
        }
        Poll::Ready(self.add_trailers())
    }

    /// Adds the route's trailers to a body that has ended without any.
    fn add_trailers(&mut self) -> Result<(), ResponseFailure> {
        if self.rules.may_add() && self.body.has_ended() {
            let mut trailers = HeaderMap::new();
            self.change(&mut trailers)?;
            self.trailers = (!trailers.is_empty()).then(|| Box::new(trailers));
        }
        Ok(())
    }

    /// Converts the destination's trailers, once.
    fn change(&mut self, trailers: &mut HeaderMap) -> Result<(), ResponseFailure> {
        let changed = std::mem::take(&mut self.rules).apply(trailers);
        changed.map_err(|panicked| {
            tracing::debug!(target: crate::observe::targets::REQUEST, panic = panicked.0, "a change of trailers panicked");
            ResponseFailure::Trailers
        })
    }
}

/// The changes of the route and its filters to the trailers of a response, whose request has this method.
pub(crate) fn trailer_rules(
    method: Method,
    status: StatusCode,
    plan: &CompiledTransforms,
    own: Option<Box<TrailerChanges>>,
) -> TrailerRules {
    // Such responses have no body, and so no trailers.
    let has_none = method == Method::Head
        || matches!(status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED);
    match has_none {
        true => TrailerRules::default(),
        false => TrailerRules::new(plan.trailers.as_ref(), status, own),
    }
}
