//! cargo run --package examples --example embed_axum
//!
//! The proxy as part of an axum service: the program handles some paths itself and forwards the
//! others, on its own runtime, with its own middleware around both.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::extract::{ConnectInfo, Request};
use axum::middleware::{Next, from_fn, map_request};
use axum::routing::get;
use examples::{Failure, start_service, wait_unless_once};
use proxy_model::config::ProxyConfig;
use proxy_model::{CompileOptions, Snapshot};
use proxy_runtime::{ConnectionInfo, Proxy};
use tokio::net::TcpListener;
use tower::ServiceBuilder;

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let orders = start_service("orders").await?;
    let config = ProxyConfig::from_json(&format!(
        r#"{{
            "Routes": {{ "orders": {{ "ClusterId": "orders", "Match": {{ "Path": "/orders/{{**rest}}" }} }} }},
            "Clusters": {{ "orders": {{ "Destinations": {{ "1": {{ "Address": "{orders}" }} }} }} }}
        }}"#
    ))?;
    let (snapshot, _) = Snapshot::compile(config, &CompileOptions::default())?;

    let (proxy, driver) = Proxy::builder().snapshot(Arc::new(snapshot)).build()?;
    tokio::spawn(driver);

    // Any tower layer goes around both; the first is the outermost.
    let middleware = ServiceBuilder::new()
        .layer(from_fn(add_a_header))
        .layer(map_request(tell_the_proxy_who_asks));
    let app = Router::new()
        .route("/hello", get(|| async { "hello from axum itself\n" }))
        .fallback_service(proxy.service())
        .layer(middleware);

    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    tokio::spawn(async move {
        let app = app.into_make_service_with_connect_info::<SocketAddr>();
        axum::serve(listener, app).await
    });

    println!("curl -i http://{address}/hello        # answered by axum");
    println!("curl -i http://{address}/orders/17    # forwarded");
    let own = examples::get(address, "/hello").await?;
    let forwarded = examples::get(address, "/orders/17?x=1").await?;
    assert_eq!(own.text, "hello from axum itself\n");
    assert_eq!(forwarded.text, "orders: GET /orders/17?x=1\n");
    assert_eq!(forwarded.headers["x-served-by"], "embed_axum");
    assert_eq!(examples::get(address, "/nothing").await?.status, 404);
    wait_unless_once().await
}

/// The proxy writes `X-Forwarded-For` from this extension.
async fn tell_the_proxy_who_asks(
    ConnectInfo(remote): ConnectInfo<SocketAddr>,
    mut request: Request,
) -> Request {
    request.extensions_mut().insert(ConnectionInfo::new(remote));
    request
}

/// Middleware of the program, which sees forwarded responses like any other.
async fn add_a_header(request: Request, next: Next) -> axum::response::Response {
    let mut response = next.run(request).await;
    let headers = response.headers_mut();
    headers.insert("x-served-by", http::HeaderValue::from_static("embed_axum"));
    response
}
