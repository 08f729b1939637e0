//! cargo run --package examples --example filter
//!
//! A filter: code that sees the head of each request and response of a route. This one requires an
//! API key, and hides the server software of the services.

use examples::{Failure, Started, send, send_request, start_service, wait_unless_once};
use http::{Method, Request, StatusCode};
use proxy_runtime::Proxy;
use proxy_runtime::filter::{Filter, FilterContext, Flow, Reply, RequestEdit, ResponseEdit};

struct ApiKey;

impl Filter for ApiKey {
    fn on_request(&self, head: &mut RequestEdit<'_>, context: &FilterContext<'_>) -> Flow {
        // The route has the key in its metadata, so one filter serves routes with different keys.
        let wanted = context.route_metadata("ApiKey").map(str::as_bytes);
        if wanted.is_none() || head.header("x-api-key") != wanted {
            return Reply::new(StatusCode::FORBIDDEN)
                .with_body("an API key is needed\n")
                .into();
        }
        // Services need not see the key. Removing a header fails only for protected ones.
        let _ = head.remove("x-api-key");
        Flow::Continue
    }

    fn on_response(&self, head: &mut ResponseEdit<'_>, _: &FilterContext<'_>) {
        let _ = head.remove("server");
    }
}

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let service = start_service("orders").await?;
    let config = format!(
        r#"{{
            "Routes": {{ "orders": {{
                "ClusterId": "orders", "Match": {{ "Path": "/{{**rest}}" }},
                "Filters": ["ApiKey"], "Metadata": {{ "ApiKey": "secret" }}
            }} }},
            "Clusters": {{ "orders": {{ "Destinations": {{ "1": {{ "Address": "{service}" }} }} }} }}
        }}"#
    );
    let started = Started::new(Proxy::builder().filter("ApiKey", ApiKey), &config)?;
    let address = started.address;

    println!("curl -i http://{address}/x                          # 403");
    println!("curl -i -H 'x-api-key: secret' http://{address}/x   # 200");
    let rejected = send(address, Method::GET, "/x").await?;
    let key = Request::get("/x").header("x-api-key", "secret");
    let answered = send_request(address, key).await?;
    println!(
        "without a key: {}, with it: {}",
        rejected.status, answered.status
    );
    assert_eq!(
        (rejected.status.as_u16(), answered.status.as_u16()),
        (403, 200)
    );
    wait_unless_once().await?;
    started.stop().await;
    Ok(())
}
