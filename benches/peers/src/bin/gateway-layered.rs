//! The gateway's proxy with the server of the library: `PORT CONFIGURATION`.
//!
//! One port on loopback, one worker. The configuration is the section `ReverseProxy` of the
//! gateway's. Its routes may use the tower layer `Mark`.

use std::error::Error;
use std::net::{Ipv4Addr, SocketAddr};
use std::num::NonZeroUsize;
use std::sync::Arc;

use proxy_model::Snapshot;
use proxy_model::config::ProxyConfig;
use proxy_runtime::Proxy;
use proxy_runtime::http::{HeaderName, HeaderValue, Request, Response};
use proxy_runtime::server::{Limits, Listener, Server};
use tower::ServiceBuilder;

/// The field that the layer sets. A `HeaderName`, since a `&str` would be parsed for each request.
static MARK: HeaderName = HeaderName::from_static("x-layer");

/// Maximum requests per connection, the same as in the configurations of the gateway and nginx.
const REQUESTS: u64 = 1_000_000_000;

const USAGE: &str = "usage: gateway-layered PORT CONFIGURATION";

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let port: u16 = arguments.next().ok_or(USAGE)?.parse()?;
    let configuration = std::fs::read_to_string(arguments.next().ok_or(USAGE)?)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(serve(port, &configuration))
}

async fn serve(port: u16, configuration: &str) -> Result<(), Box<dyn Error>> {
    let mark = ServiceBuilder::new()
        .map_request(mark_request)
        .map_response(mark_response)
        .into_inner();
    let builder = Proxy::builder().layer("Mark", mark);
    let config = ProxyConfig::from_json(configuration)?;
    let (snapshot, _) = Snapshot::compile(config, &builder.compile_options())?;
    let (proxy, driver) = builder.snapshot(Arc::new(snapshot)).build()?;
    let listener = Listener::http(SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
    let mut limits = Limits::default();
    limits.requests_per_connection = REQUESTS;
    let server = Server::for_proxy(&proxy)
        .with_workers(NonZeroUsize::MIN)
        .with_limits(limits)
        .with_listener(listener);
    let _server = server.bind()?.start()?;
    driver.await;
    Ok(())
}

/// The minimal work of a layer: a change of the request, and one of the response.
fn mark_request<B>(mut request: Request<B>) -> Request<B> {
    let headers = request.headers_mut();
    headers.insert(&MARK, HeaderValue::from_static("seen"));
    request
}

fn mark_response<B>(mut response: Response<B>) -> Response<B> {
    let headers = response.headers_mut();
    headers.insert(&MARK, HeaderValue::from_static("seen"));
    response
}
