//! cargo run --package examples --example custom_balancer
//!
//! A custom load balancing policy: writes go to the primary, reads go anywhere.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use examples::{Failure, send, start_service, wait_unless_once};
use http::Method;
use proxy_model::config::ProxyConfig;
use proxy_model::{RequestHead, Snapshot};
use proxy_runtime::Proxy;
use proxy_runtime::balance::{Candidates, LoadBalancer};
use proxy_runtime::server::{Listener, Server};

struct PrimaryWrites;

impl LoadBalancer for PrimaryWrites {
    fn pick(&self, candidates: &Candidates<'_>, head: &dyn RequestHead) -> Option<usize> {
        if matches!(head.method(), "GET" | "HEAD") {
            return Some(candidates.in_turn(candidates.next_turn()));
        }
        // Without a primary the request gets 503: better than a write that a secondary rejects.
        (0..candidates.len()).find(|&i| {
            let metadata = candidates.metadata(i);
            metadata
                .and_then(|metadata| metadata.get("Role"))
                .is_some_and(|role| role == "primary")
        })
    }
}

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let primary = start_service("primary").await?;
    let secondary = start_service("secondary").await?;
    let config = ProxyConfig::from_json(&format!(
        r#"{{
            "Routes": {{ "all": {{ "ClusterId": "store", "Match": {{ "Path": "/{{**rest}}" }} }} }},
            "Clusters": {{ "store": {{
                "LoadBalancingPolicy": "PrimaryWrites",
                "Destinations": {{
                    "a": {{ "Address": "{primary}", "Metadata": {{ "Role": "primary" }} }},
                    "b": {{ "Address": "{secondary}", "Metadata": {{ "Role": "secondary" }} }}
                }}
            }} }}
        }}"#
    ))?;

    let builder = Proxy::builder().balancer("PrimaryWrites", Arc::new(PrimaryWrites));
    // The builder knows the policy's name, so the configuration may use it.
    let (snapshot, _) = Snapshot::compile(config, &builder.compile_options())?;
    let (proxy, driver) = builder.snapshot(Arc::new(snapshot)).build()?;
    tokio::spawn(driver);
    let server = Server::for_proxy(&proxy)
        .with_listener(Listener::http("127.0.0.1:0".parse()?))
        .bind()?;
    let address = server.local_addrs()[0];
    let running = server.start()?;

    println!("curl http://{address}/x            # the two in turn");
    println!("curl -X POST http://{address}/x    # always the primary");
    for (method, expected) in [(Method::GET, 2), (Method::POST, 1)] {
        let mut answers = BTreeMap::<String, u32>::new();
        for _ in 0..10 {
            let answer = send(address, method.clone(), "/x").await?;
            *answers.entry(answer.text.trim().to_owned()).or_default() += 1;
        }
        println!("10 × {method}: {answers:?}");
        assert_eq!(answers.len(), expected);
    }
    wait_unless_once().await?;
    running.shutdown(Duration::from_secs(5)).await;
    Ok(())
}
