//! A line of the log: a draft while the request is served, and at its end the record that sinks get.

use std::net::SocketAddr;
use std::time::{Duration, SystemTime};

use http::header::{HOST, HeaderValue, USER_AGENT};
use http::request::Parts;
use http::{Method, Response, StatusCode, Uri, Version};
use tokio::time::Instant;

use super::AccessLogSink;
use crate::connection::ConnectionInfo;
use crate::error::ForwardErrorKind;
use crate::response::ExchangeInfo;
use crate::server::outcome::Outcome;

/// What is known of a request at its end.
///
/// Values that come from the client are as it sent them: whoever writes them anywhere must escape them. Credentials and
/// cookies are not among them.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct AccessRecord<'a> {
    /// When the request's head had arrived.
    pub time: SystemTime,
    /// The client's address.
    pub remote: Option<SocketAddr>,
    /// Whether the connection is TLS.
    pub tls: bool,
    /// The method; empty if what came could not be read as a request.
    pub method: &'a str,
    /// Host and port as the client named them; empty if it named none.
    pub host: &'a [u8],
    /// The path as the client sent it; empty if what came could not be read as a request.
    pub path: &'a str,
    /// The query as the client sent it, without the `?`.
    pub query: Option<&'a str>,
    /// The protocol between client and server.
    pub version: Version,
    /// The response's status; `None` when the client went away before there was one.
    pub status: Option<StatusCode>,
    /// Bytes of the request's body, or that a tunnel took from the client. A tunnel within HTTP/2 is logged when it
    /// begins, and so without its bytes.
    pub bytes_received: u64,
    /// Bytes of the response's body, or that a tunnel gave to the client.
    pub bytes_sent: u64,
    /// From the end of the request's head to the end of the response's body, or of the tunnel. Of a head that took too
    /// long, from its beginning.
    pub duration: Duration,
    /// How it ended.
    pub outcome: Outcome,
    /// Where the request was forwarded, and how that went. `None` when it did not come so far.
    pub exchange: Option<&'a ExchangeInfo>,
    /// What went wrong while the response's body was read, after the response had begun.
    pub body_error: Option<ForwardErrorKind>,
    /// Why the server refused the request itself.
    pub refusal: Option<&'static str>,
    /// The `User-Agent` field.
    pub user_agent: Option<&'a [u8]>,
}

/// A record in the making.
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
    refusal: Option<&'static str>,
}

impl Draft {
    /// Notes the request as it was sent. Nothing is copied but pointers.
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
            refusal: None,
        }
    }

    /// The record of what did not become a request: all that is known is who sent it, since when, and why it was refused.
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
            refusal: Some(reason),
        }
    }

    /// Notes the head of the service's response.
    pub(crate) fn responded<B>(&mut self, response: &Response<B>) {
        self.answered(response.status(), response.extensions().get().cloned());
    }

    /// Notes a response that the service has written itself, and what happened.
    pub(crate) fn answered(&mut self, status: StatusCode, exchange: Option<ExchangeInfo>) {
        self.status = Some(status);
        self.exchange = exchange;
    }

    /// Notes a refusal of the server.
    pub(crate) fn refused(&mut self, status: StatusCode, reason: &'static str) {
        self.status = Some(status);
        self.refusal = Some(reason);
    }

    /// Notes that the response's body could not be read to its end.
    pub(crate) fn failed(&mut self, error: Option<ForwardErrorKind>) {
        self.body_error = error;
    }

    /// Gives the finished record to `sink`.
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
            refusal: self.refusal,
            user_agent: self.user_agent.as_ref().map(HeaderValue::as_bytes),
        });
    }
}
