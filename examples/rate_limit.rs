//! cargo run --package examples --example rate_limit
//!
//! A tower layer around a route: two requests per second, and 429 for the rest. Layers of `tower`
//! and `tower-http` are used in the same way, if their service is `Clone`; tower's own `RateLimit`
//! is not, and makes clients wait instead.

use std::sync::Arc;
use std::time::{Duration, Instant};

use examples::{Failure, Started, send, start_service, wait_unless_once};
use http::{Method, Request, Response, StatusCode};
use parking_lot::Mutex;
use proxy_runtime::layer::{ProxyRequestBody, RouteService};
use proxy_runtime::{Proxy, ProxyBody};
use tower::{BoxError, Service, ServiceBuilder, service_fn};

/// Maximum requests per second, for all clients together.
const LIMIT: u32 = 2;

/// The current second, with its number of requests.
type Count = Arc<Mutex<(Instant, u32)>>;

fn is_allowed(count: &Count) -> bool {
    let mut count = count.lock();
    if count.0.elapsed() >= Duration::from_secs(1) {
        *count = (Instant::now(), 0);
    }
    count.1 += 1;
    count.1 <= LIMIT
}

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let service = start_service("search").await?;
    let config = format!(
        r#"{{
            "Routes": {{ "search": {{
                "ClusterId": "search", "Match": {{ "Path": "/{{**rest}}" }}, "Layers": ["RateLimit"]
            }} }},
            "Clusters": {{ "search": {{ "Destinations": {{ "1": {{ "Address": "{service}" }} }} }} }}
        }}"#
    );
    let count: Count = Arc::new(Mutex::new((Instant::now(), 0)));
    let layer = ServiceBuilder::new().layer_fn(move |rest: RouteService| {
        let count = Arc::clone(&count);
        service_fn(move |request: Request<ProxyRequestBody>| {
            let (allowed, mut rest) = (is_allowed(&count), rest.clone());
            async move {
                if allowed {
                    return rest.call(request).await;
                }
                let mut response = Response::new(ProxyBody::default());
                *response.status_mut() = StatusCode::TOO_MANY_REQUESTS;
                response.headers_mut().insert("retry-after", 1.into());
                Ok::<_, BoxError>(response)
            }
        })
    });
    let started = Started::new(Proxy::builder().layer("RateLimit", layer), &config)?;
    let address = started.address;

    println!("curl -i http://{address}/x   # the third within a second: 429");
    let mut statuses = Vec::new();
    for _ in 0..5 {
        statuses.push(send(address, Method::GET, "/x").await?.status.as_u16());
    }
    println!("{statuses:?}");
    assert!(statuses.starts_with(&[200, 200]) && statuses.contains(&429));
    wait_unless_once().await?;
    started.stop().await;
    Ok(())
}
