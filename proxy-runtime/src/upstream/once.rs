//! One request over a connection of its own.

#[cfg(feature = "http2")]
use std::future::poll_fn;
#[cfg(feature = "http2")]
use std::sync::Arc;

#[cfg(feature = "http2")]
use http::HeaderMap;
use http::{Request, StatusCode};
use proxy_model::ClusterId;
use proxy_model::compiled::{DestinationAddress, Upstream};

#[cfg(feature = "http2")]
use super::Protocols;
use super::Upstreams;
use super::error::ConnectError;
use super::http1::Http1Connection;
#[cfg(feature = "http2")]
use super::http2::{Http2Connection, Http2RoundTrip};
use super::io::UpstreamIo;
use super::protocol;
use crate::BoxError;
use crate::progress::OutgoingBody;

impl Upstreams {
    /// Opens a connection to an address of `cluster`, with TLS where the address wants it, and closes it. There is no timeout.
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
        let opening = self.connector.open(cluster, address, upstream, protocols);
        drop(opening.await?);
        Ok(())
    }

    /// Makes one call of `cluster` over an HTTP/2 connection of its own, which no pool counts. Returns the status, the fields
    /// of the head and the trailers, and at most `most` bytes of the body. There is no timeout.
    ///
    /// Cancel-safe: dropped, it closes the connection.
    #[cfg(feature = "http2")]
    pub(crate) async fn call_once(
        &self,
        cluster: &ClusterId,
        address: &DestinationAddress,
        upstream: &Upstream,
        request: Request<OutgoingBody>,
        most: usize,
    ) -> Result<(StatusCode, HeaderMap, Vec<u8>), BoxError> {
        let opening = self
            .connector
            .open(cluster, address, upstream, Protocols::Http2);
        let opened = opening.await?;
        if !opened.http2 {
            return Err("it does not speak HTTP/2".into());
        }
        let io = UpstreamIo::uncounted(opened.transport);
        let connection = Arc::new(Http2Connection::handshake(io, opened.peer).await?);
        let (head, body) = request.into_parts();
        let mut round_trip = Http2RoundTrip::new(connection, head, body);
        let response = match poll_fn(|cx| round_trip.poll(cx)).await {
            Ok(response) => response,
            Err(failed) => return Err(failed.error.into()),
        };
        let (head, mut body) = response.into_parts();
        let mut fields = head.headers;
        let mut content = Vec::new();
        while let Some(frame) = poll_fn(|cx| body.poll_frame(cx)).await {
            match frame?.into_data() {
                Ok(data) => {
                    let room = most.saturating_sub(content.len());
                    content.extend_from_slice(&data[..data.len().min(room)]);
                }
                Err(frame) => fields.extend(frame.into_trailers().unwrap_or_default()),
            }
        }
        Ok((head.status, fields, content))
    }

    /// Sends one request of `cluster` over a connection of its own, which no pool counts, and gives the status of the answer. The
    /// connection is closed without reading more. There is no timeout.
    ///
    /// `request` makes the request, told whether it is for HTTP/2.
    ///
    /// Cancel-safe: dropped, it closes the connection.
    pub(crate) async fn send_once(
        &self,
        cluster: &ClusterId,
        address: &DestinationAddress,
        upstream: &Upstream,
        request: impl FnOnce(bool) -> Result<Request<OutgoingBody>, http::Error>,
    ) -> Result<StatusCode, BoxError> {
        let protocols =
            protocol::for_request(address.scheme(), upstream).map_err(ConnectError::Unsupported)?;
        let opened = self
            .connector
            .open(cluster, address, upstream, protocols)
            .await?;
        let request = request(opened.http2)?;
        let io = UpstreamIo::uncounted(opened.transport);
        #[cfg(feature = "http2")]
        if opened.http2 {
            let connection = Arc::new(Http2Connection::handshake(io, opened.peer).await?);
            let (head, body) = request.into_parts();
            let mut round_trip = Http2RoundTrip::new(connection, head, body);
            return match poll_fn(|cx| round_trip.poll(cx)).await {
                Ok(response) => Ok(response.status()),
                Err(failed) => Err(failed.error.into()),
            };
        }
        let mut connection = Http1Connection::new(io, opened.peer);
        match connection.send(request).await {
            Ok(response) => Ok(response.status()),
            Err(failed) => Err(failed.error.into()),
        }
    }
}
