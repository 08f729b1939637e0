//! Destinations whose names do not resolve.

use std::sync::Arc;

use proxy_runtime::Proxy;
use proxy_runtime::proxy_model::Snapshot;
use proxy_runtime::proxy_model::config::ProxyConfig;
use serde_json::json;
use testkit::raw::RawClient;

use crate::server::ways::as_bytes;

/// A name that the system rejects without a query: a label has at most 63 letters (RFC 1035 section
/// 2.3.4).
fn no_name() -> String {
    format!("{}.invalid", "a".repeat(64))
}

#[tokio::test]
async fn a_name_that_does_not_resolve_is_a_problem() {
    let config = json!({
        "Routes": { "r": { "ClusterId": "c", "Match": { "Path": "/{**rest}" } } },
        "Clusters": { "c": { "Destinations": { "d/1": { "Address": format!("http://{}", no_name()) } } } },
    });
    let config = ProxyConfig::from_json(&config.to_string()).unwrap();
    let builder = Proxy::builder();
    let (snapshot, _) = Snapshot::compile(config, &builder.compile_options()).unwrap();
    let (proxy, driver) = builder.snapshot(Arc::new(snapshot)).build().unwrap();
    tokio::spawn(driver);
    assert!(proxy.observed_problems().is_empty());
    let server = as_bytes(&proxy);
    let request = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
    let response = RawClient::exchange(server.local_addrs()[0], request).await;
    assert_eq!(response.unwrap().head.status, 502);
    let problems = proxy.observed_problems();
    let problem = problems.iter().next().expect("it is said");
    assert_eq!(
        (&*problem.code, &*problem.pointer),
        ("unresolved_name", "/Clusters/c/Destinations/d~11")
    );
    assert!(problem.message.contains(&no_name()), "{problem}");
    assert!(problem.message.contains("no connection can be opened"));
    #[cfg(feature = "metrics")]
    {
        let text = proxy.collector().to_text();
        for line in [
            "proxy_names_unresolved 1\n",
            "proxy_name_failures_total 1\n",
        ] {
            assert!(text.contains(line), "{line}");
        }
    }
}
