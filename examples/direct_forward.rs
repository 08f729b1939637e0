//! cargo run --package examples --example direct_forward
//!
//! Direct forwarding: the program decides for each request where it goes, and no configuration names
//! the destinations. Each tenant has a service of its own here.

use std::collections::HashMap;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::response::IntoResponse;
use examples::{Failure, get, start_service, wait_unless_once};
use http::StatusCode;
use proxy_runtime::direct::{Forwarder, ForwarderOptions};

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let tenants = HashMap::from([
        ("red", start_service("red").await?),
        ("blue", start_service("blue").await?),
    ]);
    let forwarder = Arc::new(Forwarder::new(ForwarderOptions::default())?);
    let answer = move |request: Request| {
        let tenant = request.uri().path().split('/').nth(1).unwrap_or_default();
        let sent = tenants
            .get(tenant)
            .map(|address| forwarder.send(request, address));
        async move {
            match sent {
                None => StatusCode::NOT_FOUND.into_response(),
                // Errors of destinations are responses; this one is a wrong address.
                Some(sent) => sent.await.map_or_else(
                    |_| StatusCode::BAD_GATEWAY.into_response(),
                    |response| response.map(Body::new),
                ),
            }
        }
    };
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let server = axum::serve(listener, Router::new().fallback(answer));
    tokio::spawn(server.into_future());

    println!("curl http://{address}/red/x   # the service of the tenant `red`");
    for tenant in ["red", "blue"] {
        let answer = get(address, &format!("/{tenant}/x")).await?;
        assert!(answer.text.starts_with(tenant), "{}", answer.text);
    }
    assert_eq!(get(address, "/green/x").await?.status, 404);
    wait_unless_once().await
}
