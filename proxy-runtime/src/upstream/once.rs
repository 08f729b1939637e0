//! One request over a connection of its own.

#[cfg(feature = "http2")]
use std::future::poll_fn;
#[cfg(feature = "http2")]
use std::sync::Arc;

use http::{Request, StatusCode};
use proxy_model::ClusterId;
use proxy_model::compiled::{DestinationAddress, Upstream};

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
    /// Sends one request of `cluster` over a connection of its own, which no pool counts, and gives the status of the
    /// answer. The connection is closed without reading more. There is no timeout.
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
