//! axum-reverse-proxy as a program: `PORT WORKERS ORIGIN…`, with origins as `http://127.0.0.1:4711`.
//!
//! HTTP/1.1 and HTTP/2 with prior knowledge on one port. One worker is a single-threaded runtime,
//! which is cheaper than the default runtime with one thread.

use std::error::Error;
use std::net::{Ipv4Addr, SocketAddr};

use axum::Router;
use axum_reverse_proxy::{BalancedProxy, HostBehaviour, ProxyPolicy};
use tokio::net::TcpListener;
use tokio::runtime::Builder;

const USAGE: &str = "usage: competitor-axum-reverse-proxy PORT WORKERS ORIGIN...";

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let port: u16 = arguments.next().ok_or(USAGE)?.parse()?;
    let workers: usize = arguments.next().ok_or(USAGE)?.parse()?;
    let origins: Vec<String> = arguments.collect();
    if origins.is_empty() {
        return Err(USAGE.into());
    }
    let mut builder = match workers {
        1 => Builder::new_current_thread(),
        _ => Builder::new_multi_thread(),
    };
    if workers > 1 {
        builder.worker_threads(workers);
    }
    builder.enable_all().build()?.block_on(serve(port, origins))
}

async fn serve(port: u16, origins: Vec<String>) -> Result<(), Box<dyn Error>> {
    let policy = ProxyPolicy::new()
        .with_host_behaviour(HostBehaviour::Preserve)
        .with_public_scheme("http");
    let origins: Vec<&str> = origins.iter().map(String::as_str).collect();
    let proxy: Router = BalancedProxy::new("/", origins).with_policy(policy).into();
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await?;
    let service = proxy.into_make_service_with_connect_info::<SocketAddr>();
    axum::serve(listener, service).await?;
    Ok(())
}
