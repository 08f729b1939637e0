//! cargo run --package examples --example static_gateway
//!
//! A complete gateway in a program: configuration in code, weights for a canary, one runtime per
//! core.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use examples::{Failure, send, start_service, wait_unless_once};
use http::Method;
use proxy_model::config::ProxyConfig;
use proxy_model::{CompileOptions, Snapshot};
use proxy_runtime::Proxy;
use proxy_runtime::server::{Listener, Server};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Failure> {
    let stable = start_service("stable").await?;
    let canary = start_service("canary").await?;
    let config = ProxyConfig::from_json(&format!(
        r#"{{
            "Routes": {{
                "web": {{
                    "Match": {{ "Path": "/{{**page}}" }},
                    "WeightedClusters": [
                        {{ "ClusterId": "stable", "Weight": 9 }},
                        {{ "ClusterId": "canary", "Weight": 1 }}
                    ]
                }},
                "try-canary": {{
                    "Match": {{ "Path": "/{{**page}}", "Headers": [ {{ "Name": "X-Canary", "Mode": "Exists" }} ] }},
                    "ClusterId": "canary"
                }}
            }},
            "Clusters": {{
                "stable": {{ "Destinations": {{ "1": {{ "Address": "{stable}" }} }} }},
                "canary": {{ "Destinations": {{ "1": {{ "Address": "{canary}" }} }} }}
            }}
        }}"#
    ))?;
    let (snapshot, warnings) = Snapshot::compile(config, &CompileOptions::default())?;
    assert!(warnings.is_empty(), "{warnings}");

    let (proxy, driver) = Proxy::builder().snapshot(Arc::new(snapshot)).build()?;
    tokio::spawn(driver);
    let server = Server::for_proxy(&proxy)
        .with_listener(Listener::http("127.0.0.1:0".parse()?))
        .bind()?;
    let address = server.local_addrs()[0];
    let running = server.start()?;

    println!("curl http://{address}/                    # one in ten is the canary");
    println!("curl -H 'X-Canary: 1' http://{address}/   # always the canary");
    let mut answers = BTreeMap::<String, u32>::new();
    for _ in 0..200 {
        let answer = send(address, Method::GET, "/").await?;
        *answers.entry(answer.text.trim().to_owned()).or_default() += 1;
    }
    println!("200 requests: {answers:?}");
    assert_eq!(answers.values().sum::<u32>(), 200);
    assert!(answers["stable: GET /"] > answers.get("canary: GET /").copied().unwrap_or(0));

    wait_unless_once().await?;
    let report = running.shutdown(Duration::from_secs(5)).await;
    println!(
        "stopped: {} connections ended well, {} were cut",
        report.drained, report.cut
    );
    Ok(())
}
