//! Records of the access log: drafts during a request, and the final record for sinks.

use std::net::SocketAddr;
use std::time::{Duration, SystemTime};

use http::header::{HOST, HeaderValue, USER_AGENT};
use http::request::Parts;
use http::{Method, Response, StatusCode, Uri, Version};
use tokio::time::Instant;

use super::AccessLogSink;
use crate::connection::ConnectionInfo;
use crate::error::{Cause, ForwardErrorKind};
use crate::response::ExchangeInfo;
use crate::server::outcome::Outcome;

/// A finished request.
///
/// Values from the client are unchanged: a sink must escape them. Credentials and cookies are not
/// included.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct AccessRecord<'a> {
    /// The time when the head of the request was complete.
    pub time: SystemTime,
    /// The client's address.
    pub remote: Option<SocketAddr>,
    /// True if the connection uses TLS.
    pub tls: bool,
    /// The method; empty if the request could not be parsed.
    pub method: &'a str,
    /// Host and port as sent by the client; empty if there were none.
    pub host: &'a [u8],
    /// The path as sent by the client; empty if the request could not be parsed.
    pub path: &'a str,
    /// The query as sent by the client, without `?`.
    pub query: Option<&'a str>,
    /// The protocol between client and server.
    pub version: Version,
    /// The response status; `None` if the client disconnected before the response.
    pub status: Option<StatusCode>,
    /// Bytes of the request body, or bytes that a tunnel received from the client.
    pub bytes_received: u64,
    /// Bytes of the response body, or bytes that a tunnel sent to the client.
    pub bytes_sent: u64,
    /// Time from the end of the request head to the end of the response body or of the tunnel. For
    /// a head that timed out, time from its beginning.
    pub duration: Duration,
    /// The end of the exchange.
    pub outcome: Outcome,
    /// The forwarding of the request. `None` if it was not forwarded.
    pub exchange: Option<&'a ExchangeInfo>,
    /// The error of the response body or the tunnel, after the response had begun.
    pub body_error: Option<ForwardErrorKind>,
    /// The reason why the server rejected the request.
    pub rejection: Option<&'static str>,
    /// The cause of an early end of the client's connection or stream, if the server ended it.
    pub disconnected: Option<Cause>,
    /// The `User-Agent` field.
    pub user_agent: Option<&'a [u8]>,
}

impl AccessRecord<'_> {
    /// The error of the exchange or of its body, if there was one.
    pub(super) fn error(&self) -> Option<ForwardErrorKind> {
        let of_exchange = || self.exchange.and_then(|info| info.error);
        self.body_error.or_else(of_exchange)
    }

    /// The cause of the error, of a reply in place of a destination's response, of the server's rejection, or of the
    /// early end; `None` if the request was served.
    pub fn cause(&self) -> Option<Cause> {
        let of_error = self.body_error.map(ForwardErrorKind::cause);
        let of_exchange = || self.exchange.and_then(ExchangeInfo::cause);
        let of_rejection = || {
            let status = self.rejection.and(self.status)?;
            Some(Cause::of_rejection(status))
        };
        let of_end = || match self.outcome {
            Outcome::Complete => None,
            Outcome::Aborted => Some(self.disconnected.unwrap_or(Cause::ClientGone)),
            Outcome::Failed => Some(Cause::ExtensionFailed),
        };
        // From the most specific to the least.
        of_error
            .or_else(of_exchange)
            .or_else(of_rejection)
            .or_else(of_end)
    }

    /// Returns true if the request was not served as its client expects: it has a [cause](Self::cause), such as a
    /// rejection by a policy, or a status of 500 and above. A request for no route is the client's mistake.
    pub(super) fn is_failure(&self) -> bool {
        let is_served = |status: StatusCode| !status.is_server_error();
        self.cause().is_some_and(|cause| cause != Cause::NoRoute)
            || self.outcome != Outcome::Complete
            || !self.status.is_some_and(is_served)
    }
}

/// A record of a request in progress.
#[derive(Debug)]
pub(crate) struct Draft {
    time: SystemTime,
    begin: Instant,
    connection: ConnectionInfo,
    method: Option<Method>,
    target: Option<Uri>,
    host: Option<HeaderValue>,
    version: Version,
    user_agent: Option<HeaderValue>,
    status: Option<StatusCode>,
    exchange: Option<ExchangeInfo>,
    body_error: Option<ForwardErrorKind>,
    rejection: Option<&'static str>,
    disconnected: Option<Cause>,
}

impl Draft {
    /// Records the request as sent. Clones share the memory of the head.
    pub(crate) fn new(head: &Parts, connection: ConnectionInfo) -> Self {
        Self {
            time: SystemTime::now(),
            begin: Instant::now(),
            connection,
            method: Some(head.method.clone()),
            target: Some(head.uri.clone()),
            host: head.headers.get(HOST).cloned(),
            version: head.version,
            user_agent: head.headers.get(USER_AGENT).cloned(),
            status: None,
            exchange: None,
            body_error: None,
            rejection: None,
            disconnected: None,
        }
    }

    /// Creates the record of an invalid request: only the client, the time and the reason of the
    /// rejection are known.
    pub(crate) fn malformed(
        connection: ConnectionInfo,
        begin: Instant,
        status: StatusCode,
        reason: &'static str,
    ) -> Self {
        Self {
            time: SystemTime::now(),
            begin,
            connection,
            method: None,
            target: None,
            host: None,
            version: Version::HTTP_11,
            user_agent: None,
            status: Some(status),
            exchange: None,
            body_error: None,
            rejection: Some(reason),
            disconnected: None,
        }
    }

    /// Records the head of the service's response.
    pub(crate) fn responded<B>(&mut self, response: &Response<B>) {
        self.answered(response.status(), response.extensions().get().cloned());
    }

    /// Records a response that the service has written itself, and its exchange.
    pub(crate) fn answered(&mut self, status: StatusCode, exchange: Option<ExchangeInfo>) {
        self.status = Some(status);
        self.exchange = exchange;
    }

    /// Records the exchange of a client that has left before its response.
    pub(crate) fn left(&mut self, exchange: ExchangeInfo) {
        // A response that has begun has noted its exchange already.
        self.exchange.get_or_insert(exchange);
    }

    /// Records a rejection by the server.
    pub(crate) fn rejected(&mut self, status: StatusCode, reason: &'static str) {
        self.status = Some(status);
        self.rejection = Some(reason);
    }

    /// Records that the response body could not be read to its end.
    pub(crate) fn failed(&mut self, error: Option<ForwardErrorKind>) {
        self.body_error = error;
    }

    /// Records why the client's connection or stream is ended before it has the whole response.
    pub(crate) fn disconnected(&mut self, cause: Cause) {
        self.disconnected = Some(cause);
    }

    /// Records why the server drops the request before its end, if nothing else is known.
    pub(crate) fn dropped(&mut self) {
        match Cause::of_drop() {
            // The default for an early end.
            Cause::ClientGone => {}
            cause => {
                self.disconnected.get_or_insert(cause);
            }
        }
    }

    /// Passes the final record of a tunnel, whose end is noticed when it is dropped. `passed`: the bytes received and
    /// sent, if the client got the response that begins it.
    pub(crate) fn finish_tunnel(mut self, sink: &dyn AccessLogSink, passed: Option<(u64, u64)>) {
        let error = ForwardErrorKind::of_tunnel();
        self.dropped();
        let outcome = match error {
            _ if passed.is_none() || self.disconnected.is_some() => Outcome::Aborted,
            None => Outcome::Complete,
            Some(error) if error.cause() == Cause::ClientGone => Outcome::Aborted,
            Some(_) => Outcome::Failed,
        };
        self.failed(error);
        let (received, sent) = passed.unwrap_or_default();
        self.finish(sink, received, sent, outcome);
    }

    /// Passes the final record to `sink`.
    pub(crate) fn finish(
        &self,
        sink: &dyn AccessLogSink,
        bytes_received: u64,
        bytes_sent: u64,
        outcome: Outcome,
    ) {
        let target = self.target.as_ref();
        let authority = target
            .and_then(Uri::authority)
            .map(|authority| authority.as_str().as_bytes());
        // The authority of the target overrides `Host`.
        let host = self.host.as_ref().map(HeaderValue::as_bytes);
        sink.log(&AccessRecord {
            time: self.time,
            remote: self.connection.remote,
            tls: self.connection.tls,
            method: self.method.as_ref().map_or("", Method::as_str),
            host: authority.or(host).unwrap_or_default(),
            path: target.map_or("", Uri::path),
            query: target.and_then(Uri::query),
            version: self.version,
            status: self.status,
            bytes_received,
            bytes_sent,
            duration: self.begin.elapsed(),
            outcome,
            exchange: self.exchange.as_ref(),
            body_error: self.body_error,
            rejection: self.rejection,
            disconnected: self.disconnected,
            user_agent: self.user_agent.as_ref().map(HeaderValue::as_bytes),
        });
    }
}
