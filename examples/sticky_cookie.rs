//! cargo run --package examples --example sticky_cookie
//!
//! Sticky sessions by a cookie: a load balancing policy reads it, and a layer sets it. The layer
//! learns the destination from the extensions of the response.

use std::sync::Arc;

use examples::{Failure, Started, get, send_request, start_service, wait_unless_once};
use http::header::{COOKIE, HeaderValue, SET_COOKIE};
use http::{Request, Response};
use proxy_model::RequestHead;
use proxy_runtime::balance::{Candidates, LoadBalancer};
use proxy_runtime::forward::ExchangeInfo;
use proxy_runtime::layer::{ProxyRequestBody, RouteService};
use proxy_runtime::{Proxy, ProxyBody};
use tower::{ServiceBuilder, ServiceExt};

/// The name of the cookie, whose value is the id of a destination.
const NAME: &str = "backend=";

struct ByCookie;

impl LoadBalancer for ByCookie {
    fn pick(&self, candidates: &Candidates<'_>, head: &dyn RequestHead) -> Option<usize> {
        let mut picked = None;
        head.for_each_header("cookie", &mut |line| {
            let cookies = String::from_utf8_lossy(line);
            let id = cookies
                .split(';')
                .find_map(|cookie| cookie.trim().strip_prefix(NAME));
            picked = (0..candidates.len()).find(|&i| Some(candidates.id(i).as_str()) == id);
            picked.is_none()
        });
        // A new client, or one whose destination is gone: the next in turn.
        picked.or_else(|| Some(candidates.in_turn(candidates.next_turn())))
    }
}

fn set_cookie(mut response: Response<ProxyBody>) -> Response<ProxyBody> {
    let exchange = response.extensions().get::<ExchangeInfo>();
    let id = exchange.and_then(ExchangeInfo::destination);
    let cookie = id.and_then(|id| {
        HeaderValue::from_str(&format!(
            "{NAME}{}; Path=/; HttpOnly; SameSite=Lax",
            id.as_str()
        ))
        .ok()
    });
    if let Some(cookie) = cookie {
        response.headers_mut().append(SET_COOKIE, cookie);
    }
    response
}

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let (a, b) = (start_service("a").await?, start_service("b").await?);
    let config = format!(
        r#"{{
            "Routes": {{ "cart": {{
                "ClusterId": "cart", "Match": {{ "Path": "/{{**rest}}" }}, "Layers": ["SetCookie"]
            }} }},
            "Clusters": {{ "cart": {{
                "LoadBalancingPolicy": "ByCookie",
                "Destinations": {{ "a": {{ "Address": "{a}" }}, "b": {{ "Address": "{b}" }} }}
            }} }}
        }}"#
    );
    let layer = ServiceBuilder::new().layer_fn(|rest: RouteService| {
        ServiceExt::<Request<ProxyRequestBody>>::map_response(rest, set_cookie)
    });
    let builder = Proxy::builder()
        .balancer("ByCookie", Arc::new(ByCookie))
        .layer("SetCookie", layer);
    let started = Started::new(builder, &config)?;
    let address = started.address;

    println!("curl -c jar -b jar http://{address}/x   # always the same one");
    let first = get(address, "/x").await?;
    let cookie = first.headers.get(SET_COOKIE).ok_or("there is no cookie")?;
    let cookie = cookie.to_str()?.split(';').next().unwrap_or_default();
    for _ in 0..5 {
        let request = Request::get("/x").header(COOKIE, cookie);
        assert_eq!(send_request(address, request).await?.text, first.text);
    }
    println!("five more with `{cookie}`: the same one");
    wait_unless_once().await?;
    started.stop().await;
    Ok(())
}
