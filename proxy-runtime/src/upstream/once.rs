//! Single requests over their own connections.

use std::future::poll_fn;
#[cfg(feature = "http2")]
use std::sync::Arc;

#[cfg(feature = "http2")]
use http::HeaderMap;
use http::uri::{InvalidUri, PathAndQuery};
use http::{HeaderValue, StatusCode};
use proxy_model::ClusterId;
use proxy_model::compiled::{DestinationAddress, Upstream};
use tokio::net::TcpStream;

use super::Upstreams;
use super::error::ConnectError;
#[cfg(feature = "http2")]
use super::http1::{Http1Body, to_map};
use super::http1::{Http1Connection, Http1Error, MOST_INTERIM, limits};
#[cfg(feature = "http2")]
use super::http2::{Http2Connection, Http2Io};
use super::io::UpstreamIo;
use super::protocol;
#[cfg(feature = "http2")]
use super::protocol::Protocols;
use super::transport::Opened;
use crate::BoxError;
use crate::http1::{Method, PooledTable, RawResponse, RequestInfo, Status, parse_response};
use crate::stream::poll_write_all;

/// A request of the proxy's own, in HTTP/1.1.
#[derive(Debug)]
pub(crate) struct OwnRequest {
    pub(crate) method: Method,
    /// The head and the body.
    pub(crate) text: Vec<u8>,
    /// The length of the head.
    pub(crate) head: usize,
}

impl OwnRequest {
    /// A request with these lines, which have their ends, and this body.
    ///
    /// # Errors
    ///
    /// The target is none.
    pub(crate) fn new(
        method: Method,
        target: String,
        authority: &HeaderValue,
        lines: &str,
        body: &[u8],
    ) -> Result<Self, InvalidUri> {
        let target = PathAndQuery::try_from(target)?;
        let name = method.name().unwrap_or_default();
        let mut text = format!("{name} {target} HTTP/1.1\r\nHost: ").into_bytes();
        text.extend_from_slice(authority.as_bytes());
        text.extend_from_slice(b"\r\n");
        text.extend_from_slice(lines.as_bytes());
        // RFC 9110 section 8.6: a request without content needs no length.
        if !body.is_empty() {
            text.extend_from_slice(format!("Content-Length: {}\r\n", body.len()).as_bytes());
        }
        text.extend_from_slice(b"\r\n");
        let head = text.len();
        text.extend_from_slice(body);
        Ok(Self { method, text, head })
    }
}

/// A response, with the beginning of its body up to the requested length.
#[cfg(feature = "http2")]
#[derive(Debug)]
pub(crate) struct OwnResponse {
    pub(crate) status: StatusCode,
    /// The fields of the head, and the trailers.
    pub(crate) fields: HeaderMap,
    pub(crate) content: Vec<u8>,
}

impl Upstreams {
    /// Opens a connection to an address of `cluster`, with TLS if the address is `https`, and closes it. There is
    /// no timeout.
    ///
    /// Cancel-safe.
    pub(crate) async fn connect_once(
        &self,
        cluster: &ClusterId,
        address: &DestinationAddress,
        upstream: &Upstream,
    ) -> Result<(), BoxError> {
        let protocols =
            protocol::for_request(address.scheme(), upstream).map_err(ConnectError::Unsupported)?;
        let opening = self
            .connector
            .open(cluster, address, upstream, protocols, None);
        drop(opening.await?);
        Ok(())
    }

    /// Opens a TCP connection to a port at the host of an address of `cluster`, without TLS and directly. There is no
    /// timeout.
    ///
    /// Cancel-safe.
    pub(crate) async fn connect_port(
        &self,
        cluster: &ClusterId,
        address: &DestinationAddress,
        port: u16,
    ) -> Result<TcpStream, BoxError> {
        let stream = self.connector.open_port(cluster, address.host(), port);
        Ok(stream.await?)
    }

    /// Makes one call of `cluster` over an HTTP/2 connection of its own, which no pool counts. Returns at most
    /// `most` bytes of the body. There is no timeout.
    ///
    /// Cancel-safe: dropped, it closes the connection.
    #[cfg(feature = "http2")]
    pub(crate) async fn call_once(
        &self,
        cluster: &ClusterId,
        address: &DestinationAddress,
        upstream: &Upstream,
        request: OwnRequest,
        most: usize,
    ) -> Result<OwnResponse, BoxError> {
        let protocols = Protocols::Http2;
        let opening = self
            .connector
            .open(cluster, address, upstream, protocols, None);
        let opened = opening.await?;
        if !opened.http2 {
            return Err("it does not speak HTTP/2".into());
        }
        let (mut connection, request) = prepared(opened, request).await?;
        let (response, table) = connection.ask(&request).await?;
        let head = connection.input.take_head(response.head_length());
        let mut fields = to_map(table.fields(), &head)?;
        let mut body = Http1Body::new(&response, table, &connection);
        let mut content = Vec::new();
        while let Some(frame) = poll_fn(|cx| body.poll_frame(&mut connection, cx)).await {
            match frame?.into_data() {
                Ok(data) => {
                    // The rest is read but not kept, since trailers follow it.
                    let room = most.saturating_sub(content.len());
                    content.extend_from_slice(&data[..data.len().min(room)]);
                }
                Err(frame) => fields.extend(frame.into_trailers().unwrap_or_default()),
            }
        }
        Ok(OwnResponse {
            status: StatusCode::from_u16(response.status())?,
            fields,
            content,
        })
    }

    /// Sends one request of `cluster` over a connection of its own, which no pool counts, and returns the status of
    /// the response. The connection is closed without reading more. There is no timeout.
    ///
    /// Cancel-safe: dropped, it closes the connection.
    pub(crate) async fn send_once(
        &self,
        cluster: &ClusterId,
        address: &DestinationAddress,
        upstream: &Upstream,
        request: OwnRequest,
    ) -> Result<StatusCode, BoxError> {
        let protocols =
            protocol::for_request(address.scheme(), upstream).map_err(ConnectError::Unsupported)?;
        let opened = self
            .connector
            .open(cluster, address, upstream, protocols, None)
            .await?;
        let (mut connection, request) = prepared(opened, request).await?;
        let (response, _) = connection.ask(&request).await?;
        Ok(StatusCode::from_u16(response.status())?)
    }
}

/// Creates a connection that no pool counts, and puts the request into the form for it.
async fn prepared(
    opened: Opened,
    mut request: OwnRequest,
) -> Result<(Http1Connection, OwnRequest), BoxError> {
    let io = UpstreamIo::uncounted(opened.transport);
    #[cfg(feature = "http2")]
    if opened.http2 {
        let shared = Arc::new(Http2Connection::handshake(io, opened.peer).await?);
        let stream = Http2Io::new(shared, &request.text[..request.head]);
        let stream = stream.ok_or("it cannot be asked in HTTP/2")?;
        return Ok((Http1Connection::of_stream(stream, opened.peer), request));
    }
    if let Some(absolute) = opened.absolute {
        let mut head = request.text[..request.head].to_vec();
        absolute.add_to(&mut head);
        let length = head.len();
        request.text.splice(..request.head, head);
        request.head = length;
    }
    Ok((Http1Connection::new(io, opened.peer), request))
}

impl Http1Connection {
    /// Sends a request, and reads the head of its final response, which stays at the front of the input.
    pub(super) async fn ask(
        &mut self,
        request: &OwnRequest,
    ) -> Result<(RawResponse, PooledTable), BoxError> {
        let mut written = 0;
        let sent =
            poll_fn(|cx| poll_write_all(&mut self.io, cx, [&request.text[..], &[]], &mut written));
        let asked = RequestInfo {
            method: request.method,
            upgrade: false,
        };
        if let Err(error) = sent.await {
            return Err(self.failure(Http1Error::Write(error)));
        }
        let (mut table, mut interim) = (PooledTable::default(), 0);
        loop {
            while !self.input.is_empty() {
                let parsed = parse_response(self.input.filled(), asked, &limits(), &mut table);
                let Status::Complete(head) = parsed.map_err(Http1Error::Rejected)? else {
                    break;
                };
                if !head.is_interim() {
                    return Ok((head, table));
                }
                self.input.consume(head.head_length());
                interim += 1;
                if interim > MOST_INTERIM {
                    return Err(Http1Error::TooManyInterim.into());
                }
            }
            match poll_fn(|cx| self.input.poll_read(&mut self.io, cx)).await {
                Ok(0) => return Err(Http1Error::NoResponse.into()),
                Ok(_) => {}
                Err(error) => return Err(self.failure(Http1Error::Read(error))),
            }
        }
    }

    /// Returns the error of a stream of HTTP/2 in place of that of the connection.
    fn failure(&self, error: Http1Error) -> BoxError {
        match self.failed() {
            Some(failed) => failed.error.to_string().into(),
            None => error.into(),
        }
    }
}
