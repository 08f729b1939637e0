//! The proxy as a tower service inside an axum server: `PORT CONFIGURATION`, for comparison with
//! axum-reverse-proxy.
//!
//! HTTP/1.1 on one port of loopback, on a single-threaded runtime, like the other program. The
//! configuration is the section `ReverseProxy` of the gateway's.

use std::error::Error;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use axum::Router;
use axum::extract::{ConnectInfo, Request};
use proxy_model::config::ProxyConfig;
use proxy_model::{CompileOptions, Snapshot};
use proxy_runtime::{ConnectionInfo, Proxy};
use tokio::net::TcpListener;
use tower::ServiceBuilder;

const USAGE: &str = "usage: service-in-axum PORT CONFIGURATION";

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
    let config = ProxyConfig::from_json(configuration)?;
    let (snapshot, _) = Snapshot::compile(config, &CompileOptions::default())?;
    let (proxy, driver) = Proxy::builder().snapshot(Arc::new(snapshot)).build()?;
    tokio::spawn(driver);
    let service = ServiceBuilder::new()
        .map_request(tell_the_proxy_who_asks)
        .service(proxy.service());
    let app = Router::new().fallback_service(service);
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await?;
    let app = app.into_make_service_with_connect_info::<SocketAddr>();
    axum::serve(listener, app).await?;
    Ok(())
}

/// The proxy writes `X-Forwarded-For` from this extension.
fn tell_the_proxy_who_asks(mut request: Request) -> Request {
    let from = request.extensions().get::<ConnectInfo<SocketAddr>>();
    if let Some(ConnectInfo(remote)) = from.copied() {
        request.extensions_mut().insert(ConnectionInfo::new(remote));
    }
    request
}
