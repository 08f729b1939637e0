//! cargo run --package examples --example sticky_cookie
//!
//! Sticky sessions by a policy of your own: its cookie has the destination's id in the clear, and a
//! session whose destination is down gets 410. The built-in policies need no code:
//! `SessionAffinity` of the cluster.

use std::sync::Arc;

use examples::{Failure, Started, get, send_request, start_service, wait_unless_once};
use http::header::{COOKIE, HeaderName, HeaderValue, SET_COOKIE};
use http::{Request, StatusCode};
use proxy_model::compiled::{Cluster, Destination, DestinationIndex};
use proxy_model::{ClusterId, DestinationId, RequestHead};
use proxy_runtime::Proxy;
use proxy_runtime::affinity::{AffinityFailurePolicy, AffinityPolicy, KeyFailure, RequestKey};
use proxy_runtime::health::Health;

/// Names the destination in the cookie `backend`.
struct ById;

impl AffinityPolicy for ById {
    fn read(&self, head: &dyn RequestHead, cluster: &Cluster) -> RequestKey {
        let mut key = RequestKey::NotSet;
        head.for_each_header("cookie", &mut |line| {
            let mut cookies = line.split(|byte| *byte == b';').map(<[u8]>::trim_ascii);
            if let Some(id) = cookies.find_map(|cookie| cookie.strip_prefix(b"backend=")) {
                let mut destinations = cluster.destinations().iter();
                let at = destinations.position(|it| it.id().as_str().as_bytes() == id);
                let index = at.map(|at| DestinationIndex(at as u32));
                key = index.map_or(RequestKey::NotFound, RequestKey::Destination);
            }
            key == RequestKey::NotSet
        });
        key
    }

    fn give(&self, destination: &Destination, _: &Cluster) -> Option<(HeaderName, HeaderValue)> {
        let cookie = format!("backend={}; Path=/; HttpOnly", destination.id());
        Some((SET_COOKIE, HeaderValue::from_str(&cookie).ok()?))
    }
}

/// Tells clients that their session is gone.
struct SessionGone;

impl AffinityFailurePolicy for SessionGone {
    fn reject(&self, _: KeyFailure, _: &Cluster) -> Option<StatusCode> {
        Some(StatusCode::GONE)
    }
}

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let (a, b) = (start_service("a").await?, start_service("b").await?);
    let config = format!(
        r#"{{
            "Routes": {{ "cart": {{ "ClusterId": "cart", "Match": {{ "Path": "/{{**rest}}" }} }} }},
            "Clusters": {{ "cart": {{
                "SessionAffinity": {{
                    "Enabled": true, "Policy": "ById", "FailurePolicy": "SessionGone", "AffinityKeyName": "backend"
                }},
                "Destinations": {{ "a": {{ "Address": "{a}" }}, "b": {{ "Address": "{b}" }} }}
            }} }}
        }}"#
    );
    let builder = Proxy::builder()
        .affinity_policy("ById", Arc::new(ById))
        .affinity_failure_policy("SessionGone", Arc::new(SessionGone));
    let started = Started::new(builder, &config)?;
    let address = started.address;

    println!("curl -c jar -b jar http://{address}/x   # always the same one");
    let first = get(address, "/x").await?;
    let cookie = first.headers.get(SET_COOKIE).ok_or("there is no cookie")?;
    let cookie = cookie.to_str()?.split(';').next().unwrap_or_default();
    let again = || Request::get("/x").header(COOKIE, cookie);
    for _ in 0..5 {
        assert_eq!(send_request(address, again()).await?.text, first.text);
    }
    println!("five more with `{cookie}`: the same one");
    let id = DestinationId::from(cookie.trim_start_matches("backend="));
    started
        .proxy
        .set_health(&ClusterId::from("cart"), &id, Health::Unhealthy);
    assert_eq!(send_request(address, again()).await?.status, 410);
    println!("it is declared unhealthy: 410");
    wait_unless_once().await?;
    started.stop().await;
    Ok(())
}
