//! cargo run --package examples --example admin --features admin
//!
//! The admin page and API of an embedded proxy: state, metrics, and explanations of requests.

use examples::{Failure, Started, get, start_service, wait_unless_once};
use proxy_runtime::Proxy;
use proxy_runtime::admin::Admin;
use tokio::net::TcpListener;

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let service = start_service("orders").await?;
    let config = format!(
        r#"{{
            "Routes": {{ "orders": {{ "ClusterId": "orders", "Match": {{ "Path": "/orders/{{**rest}}" }} }} }},
            "Clusters": {{ "orders": {{ "Destinations": {{ "1": {{ "Address": "{service}" }} }} }} }}
        }}"#
    );
    let started = Started::new(Proxy::builder(), &config)?;
    // On the loopback interface only: every client can see all routes.
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let admin = Admin::builder(started.proxy.clone()).build();
    tokio::spawn(async move { admin.serve(listener).await });

    println!("open http://{address}/                         # the page");
    println!("curl http://{address}/readyz                   # for a load balancer");
    println!("curl http://{address}/metrics                  # for Prometheus");
    get(started.address, "/orders/17").await?;
    for path in ["/readyz", "/api/v1/overview", "/metrics"] {
        assert_eq!(
            examples::send(address, http::Method::GET, path)
                .await?
                .status,
            200,
            "{path}"
        );
    }
    wait_unless_once().await?;
    started.stop().await;
    Ok(())
}
