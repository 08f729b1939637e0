//! The loop of a connection: requests, one after the other, and its end.

use std::any::Any;
use std::error::Error as StdError;
use std::future::poll_fn;
use std::rc::Rc;
use std::sync::atomic::Ordering::Relaxed;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::header::USER_AGENT;
use http::{Request, Response, StatusCode};
use http_body::Body;
use tokio::io::AsyncWriteExt;
use tokio::time::Instant;
use tower_service::Service;

use super::client::{CLOSING, Client, Head};
use super::date::write_date;
use super::fields::read_request;
use super::response::Asker;
use super::typed::{self, Next};
use super::upgrade::{OnUpgrade, Switch};
use super::upload::Upload;
use crate::engine::{self, Lane};
use crate::http1::{Framing, HeadLimits, RawRequest, Refusal};
use crate::observe::targets;
use crate::proxy::ProxyService;
use crate::server::access_log::Draft;
use crate::server::connection::{Answer, Asked, Exchange, RequestBody, Transport, after, is_grpc};
use crate::server::edge::{self, Admitted};
use crate::server::limits::Limits;
use crate::server::metrics::WorkerMetrics;

type BoxError = Box<dyn StdError + Send + Sync>;

/// The answer to a head that took too long (RFC 9110 section 15.5.9).
const TIMEOUT: &[u8] =
    b"HTTP/1.1 408 Request Timeout\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";

/// How a connection ends.
enum End {
    /// With what is in the output.
    Close,
    /// At once.
    Drop,
    Tunnel(Switch),
    #[cfg(feature = "http2")]
    Http2,
}

/// Serves a connection until it ends.
///
/// Cancel safe: dropped, it closes the connection.
pub(crate) fn serve<T, S, B>(mut client: Client<T>, service: Rc<S>) -> impl Future<Output = ()>
where
    T: Transport,
    S: Service<Request<RequestBody>, Response = Response<B>> + Clone + 'static,
    S::Error: Into<BoxError>,
    S::Future: 'static,
    B: Body<Data = Bytes> + 'static,
    B::Error: Into<BoxError>,
{
    // Not an `async fn`, which would hold its arguments twice.
    async move {
        match serve_requests(&mut client, &*service).await {
            End::Drop => {}
            End::Close => close(&mut client).await,
            End::Tunnel(switch) => switch.complete(client.io, client.input),
            #[cfg(feature = "http2")]
            End::Http2 => Box::pin(serve_http2(client, service)).await,
        }
    }
}

#[cfg(feature = "http2")]
async fn serve_http2<T, S, B>(client: Client<T>, service: Rc<S>)
where
    T: Transport,
    S: Service<Request<RequestBody>, Response = Response<B>> + Clone + 'static,
    S::Error: Into<BoxError>,
    S::Future: 'static,
    B: Body<Data = Bytes> + 'static,
    B::Error: Into<BoxError>,
{
    let Client {
        mut io,
        mut input,
        state,
        ..
    } = client;
    let read = input.filled().len();
    io.read_again(input.take(read));
    drop(input);
    crate::server::connection::serve_http2(io, S::clone(&service), state).await;
}
