//! The time that requests lose in the proxy, as metrics have it.

use proxy_runtime::Proxy;
use proxy_runtime::policy::{Decide, PolicyDecision, PolicySource, RoutePolicies};
use proxy_runtime::proxy_model::compiled::Route;
use proxy_runtime::proxy_model::config::ProxyConfig;
use proxy_runtime::proxy_model::{Problems, Snapshot};
use proxy_runtime::server::ServerHandle;
use proxy_runtime::{ConnectionInfo, filter::RequestEdit};
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;
use testkit::origin::Origin;
use testkit::raw::RawClient;
use testkit::time::eventually;

use crate::server::ways::{as_bytes, over_types};

/// Has requests for `/slow` wait.
struct Slow;

/// Far more than the others take, also on a busy machine.
const WAIT: Duration = Duration::from_secs(1);

impl PolicySource for Slow {
    fn of_routes(
        &self,
        snapshot: &Snapshot,
    ) -> Result<Vec<Option<Arc<dyn RoutePolicies>>>, Problems> {
        let policies = snapshot.routes().iter();
        Ok(policies.map(|_| Some(Arc::new(Self) as _)).collect())
    }
}

impl RoutePolicies for Slow {
    fn judge(&self, head: &mut RequestEdit<'_>, _: &Route, _: ConnectionInfo) -> PolicyDecision {
        match head.path() {
            "/slow" => PolicyDecision::Wait(Box::pin(async {
                tokio::time::sleep(WAIT).await;
                let pass: Decide = Box::new(|_, _| PolicyDecision::Pass);
                pass
            })),
            _ => PolicyDecision::Pass,
        }
    }
}

/// Returns the value of a line of metrics.
fn value(metrics: &str, series: &str) -> f64 {
    let mut lines = metrics.lines();
    let found = lines.find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
    let found = found.unwrap_or_else(|| panic!("no `{series}` in\n{metrics}"));
    found.parse().unwrap()
}

#[tokio::test]
async fn the_time_that_the_proxy_adds_is_measured() {
    for serve in [as_bytes as fn(&Proxy) -> ServerHandle, over_types] {
        let origin = Origin::named("origin");
        let address = format!("http://localhost:{}/", origin.addr().port());
        let config = json!({
            "Routes": { "r": { "ClusterId": "c", "Match": { "Path": "/{**rest}" } } },
            "Clusters": { "c": { "Destinations": { "d": { "Address": address } } } },
        });
        let builder = Proxy::builder().policies(Arc::new(Slow));
        let config = ProxyConfig::from_json(&config.to_string()).unwrap();
        let (snapshot, _) = Snapshot::compile(config, &builder.compile_options()).unwrap();
        let (proxy, driver) = builder.snapshot(Arc::new(snapshot)).build().unwrap();
        tokio::spawn(driver);
        let server = serve(&proxy);
        let mut client = RawClient::connect(server.local_addrs()[0]).await.unwrap();
        // The first one waits for a connection, the second for nothing, and the third for a policy.
        for path in ["/a", "/a", "/slow"] {
            let request = format!("GET {path} HTTP/1.1\r\nHost: h\r\n\r\n");
            client.write_all(&request).await.unwrap();
            assert_eq!(client.read_response().await.unwrap().status(), 200);
        }
        // A request counts when its response has ended.
        eventually("all three are counted", async || {
            let metrics = proxy.collector().to_text();
            metrics.contains("proxy_added_duration_seconds_count{cluster=\"c\"} 3")
        })
        .await;
        let metrics = proxy.collector().to_text();
        let added =
            |suffix: &str| value(&metrics, &format!("proxy_added_duration_seconds_{suffix}"));
        assert!(added(r#"sum{cluster="c"}"#) >= WAIT.as_secs_f64());
        // The first and the second one.
        assert_eq!(added(r#"bucket{le="0.75",cluster="c"}"#), 2.0, "{metrics}");
        let first = |suffix: &str| {
            let series = format!("proxy_first_byte_duration_seconds_{suffix}{{cluster=\"c\"}}");
            value(&metrics, &series)
        };
        assert_eq!(first("count"), 3.0);
        assert!(first("sum") >= WAIT.as_secs_f64());
        for phase in ["name", "tcp"] {
            let series =
                format!("proxy_connect_duration_seconds_count{{cluster=\"c\",phase=\"{phase}\"}}");
            assert_eq!(value(&metrics, &series), 1.0);
        }
        assert!(!metrics.contains("phase=\"tls\""), "{metrics}");
    }
}
