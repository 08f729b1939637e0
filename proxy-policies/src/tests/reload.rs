//! Policies while configurations follow each other.

use std::sync::Arc;
use std::time::Duration;

use proxy_model::Snapshot;
use proxy_model::config::{PolicyConfig, PolicyConfigs, PolicyKind, ProxyConfig};
use proxy_runtime::Proxy;
use serde_json::json;

use super::around::{send, snapshot, statuses};
use crate::Policies;

fn limiter(name: &str, permits: u32) -> String {
    format!(
        r#""RateLimiter":{{"{name}":{{"Kind":"FixedWindow","PermitLimit":{permits},"Window":"60s"}}}}"#
    )
}

const ROUTE: &str = r#""r":{"ClusterId":"c","Match":{"Path":"/r"},"RateLimiterPolicy":"few"}"#;

#[tokio::test(start_paused = true)]
async fn the_state_of_a_policy_survives_until_the_policy_changes() {
    let builder = Proxy::builder().policies(Arc::new(Policies::new()));
    let compile = |policies: &str, routes: &str| {
        let builder = Proxy::builder();
        snapshot(&builder, policies, routes)
    };
    let first = compile(&limiter("few", 2), ROUTE);
    let (proxy, _driver) = builder.snapshot(first).build().unwrap();
    let mut service = proxy.service();
    assert_eq!(statuses(&mut service, "GET /r", 3).await, [503, 503, 429]);

    // The same policy, written otherwise, beside another one, for another route too.
    let same = r#""ratelimiter":{"other":{"Kind":"Concurrency","PermitLimit":1},
        "few":{"Window":"00:01:00","PermitLimit":"2","Kind":"fixedwindow","QueueLimit":0}}"#;
    let routes = format!(
        r#"{ROUTE},"s":{{"ClusterId":"c","Match":{{"Path":"/s"}},"RateLimiterPolicy":"few"}}"#
    );
    proxy.publish(compile(same, &routes)).unwrap();
    assert_eq!(statuses(&mut service, "GET /r", 1).await, [429]);
    assert_eq!(
        statuses(&mut service, "GET /s", 1).await,
        [429],
        "one policy counts both"
    );

    // A configuration that is rejected changes nothing.
    let mut bad = ProxyConfig::from_json(&format!(
        r#"{{"Routes":{{{ROUTE}}},"Clusters":{{"c":{{}}}}}}"#
    ))
    .unwrap();
    let mut policies = PolicyConfigs::default();
    policies.insert(PolicyConfig {
        kind: PolicyKind::RateLimiter,
        name: "few".into(),
        settings: json!({ "kind": "Often" }),
        timeout: None,
    });
    bad.policies = Arc::new(policies);
    let (bad, _) = Snapshot::compile(bad, &Default::default()).unwrap();
    let problems = proxy.publish(Arc::new(bad)).unwrap_err();
    let told = problems.to_string();
    assert!(told.contains("/Policies/RateLimiter/few"), "{told}");
    assert_eq!(statuses(&mut service, "GET /r", 1).await, [429]);

    // Another limit starts from zero, and changes are shown without settings.
    proxy.publish(compile(&limiter("few", 3), ROUTE)).unwrap();
    assert_eq!(
        statuses(&mut service, "GET /r", 4).await,
        [503, 503, 503, 429]
    );
    let lines = proxy.history()[0].lines.join("\n");
    assert!(
        lines.contains("policies changed: RateLimiter other, RateLimiter few"),
        "{lines}"
    );

    // Without the policy, nothing is left of it.
    let open = r#""r":{"ClusterId":"c","Match":{"Path":"/r"}}"#;
    proxy.publish(compile("", open)).unwrap();
    assert_eq!(statuses(&mut service, "GET /r", 5).await, [503; 5]);
    proxy.publish(compile(&limiter("few", 1), ROUTE)).unwrap();
    assert_eq!(statuses(&mut service, "GET /r", 2).await, [503, 429]);
}

/// A request that began with one configuration ends with it, also if its policy is gone meanwhile.
#[tokio::test(start_paused = true)]
async fn permits_are_given_back_to_the_policy_that_gave_them() {
    let builder = Proxy::builder().policies(Arc::new(Policies::new()));
    let one = r#""RateLimiter":{"few":{"Kind":"Concurrency","PermitLimit":1,"QueueLimit":1}}"#;
    let compile = |policies: &str| snapshot(&Proxy::builder(), policies, ROUTE);
    let (proxy, _driver) = builder.snapshot(compile(one)).build().unwrap();
    let mut service = proxy.service();
    let held = send(&mut service, "GET /r", &[]).await;
    let mut other = service.clone();
    let waiting = tokio::spawn(async move { send(&mut other, "GET /r", &[]).await.status() });
    tokio::task::yield_now().await;
    let two = r#""RateLimiter":{"few":{"Kind":"Concurrency","PermitLimit":2}}"#;
    proxy.publish(compile(two)).unwrap();
    let held_too = [
        send(&mut service, "GET /r", &[]).await,
        send(&mut service, "GET /r", &[]).await,
    ];
    assert!(held_too.iter().all(|response| response.status() == 503));
    assert_eq!(statuses(&mut service, "GET /r", 1).await, [429]);
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(
        !waiting.is_finished(),
        "it waits for the permit of the old policy"
    );
    drop(held);
    assert_eq!(waiting.await.unwrap(), 503);
    assert_eq!(statuses(&mut service, "GET /r", 1).await, [429]);
}
