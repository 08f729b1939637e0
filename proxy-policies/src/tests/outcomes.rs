//! Metrics of decisions, and causes of rejections.

use std::sync::Arc;

use proxy_runtime::policy::PolicySource;
use proxy_runtime::{Cause, Proxy};

use super::around::{send, snapshot};
use super::remote::{Script, Scripted};
use crate::Policies;

const DENY: &str = r#""Authorization":{"p":{"Networks":{"Deny":["192.0.2.0/24"]}}}"#;
const ALLOW: &str = r#""Authorization":{"p":{"Networks":{"Allow":["192.0.2.0/24"]}}}"#;
const BASIC: &str = r#""Authorization":{"p":{"Basic":{"Users":{
    "ann":"$2b$04$cVWp4XaNU8a4v1uMRum2SO026BWLIoQMD/TXg5uZV.0P.uO8m3YEm"}}}}"#;
const FORWARD: &str = r#""Authorization":{"p":{"ForwardAuth":{"Address":"http://auth.example/"}}}"#;
const CORS: &str = r#""Cors":{"p":{"Origins":["https://a.example"]}}"#;
const ONE: &str = r#""RateLimiter":{"p":{"Kind":"FixedWindow","PermitLimit":1,"Window":"1m"}}"#;
const NONE: &str = r#""RateLimiter":{"p":{"Kind":"TokenBucket","TokenLimit":1,"TokensPerPeriod":1,"ReplenishmentPeriod":"1h"}}"#;

#[tokio::test(start_paused = true)]
async fn each_decision_is_counted_and_each_rejection_has_its_cause() {
    const OTHER: &str = "Origin: https://b.example";
    const OWN: &str = "Origin: https://a.example";
    for (policy, line, origin, statuses, outcomes, cause) in [
        (
            DENY,
            "GET /",
            "",
            &[403][..],
            &["denied"][..],
            Some(Cause::RejectedByPolicy),
        ),
        (ALLOW, "GET /", "", &[204], &["admitted"], None),
        (
            BASIC,
            "GET /",
            "",
            &[401],
            &["unauthenticated"],
            Some(Cause::RejectedByPolicy),
        ),
        (
            FORWARD,
            "GET /",
            "",
            &[503],
            &["unavailable"],
            Some(Cause::AuthorizationUnavailable),
        ),
        (CORS, "OPTIONS /", OWN, &[204], &["preflight"], None),
        (CORS, "OPTIONS /", OTHER, &[204], &["denied"], None),
        (CORS, "GET /", OTHER, &[204], &[], None),
        (
            ONE,
            "GET /",
            "",
            &[204, 429],
            &["admitted", "limited"],
            Some(Cause::OverLimit),
        ),
        (
            NONE,
            "GET /",
            "",
            &[204, 429],
            &["admitted", "limited"],
            Some(Cause::OverLimit),
        ),
    ] {
        let policies = Policies::new().with_transport(Arc::new(Script::new([Scripted::Broken])));
        let policies = Arc::new(policies);
        let builder = Proxy::builder().policies(Arc::clone(&policies) as _);
        let kind = policy.split('"').nth(1).unwrap();
        let route = format!(
            r#""r":{{"Match":{{"Path":"/"}},"{kind}Policy":"p","Respond":{{"Status":204}}}}"#
        );
        let snapshot = snapshot(&builder, policy, &route);
        let (proxy, _driver) = builder.snapshot(snapshot).build().unwrap();
        let mut headers = vec!["Host: h.example"];
        if !origin.is_empty() {
            headers.extend([origin, "Access-Control-Request-Method: PUT"]);
        }
        let case = format!("{policy} {line} {origin}");
        for status in statuses {
            let response = send(&mut proxy.service(), line, &headers).await;
            assert_eq!(response.status(), *status, "{case}");
        }
        let counts = policies.counts();
        let found: Vec<_> = counts.iter().map(|count| count.outcome).collect();
        assert_eq!(found, outcomes, "{case}");
        let metrics = proxy.collector().to_text();
        for outcome in outcomes {
            let labels = format!(r#"{{kind="{kind}",policy="p",outcome="{outcome}"}} 1"#);
            assert!(metrics.contains(&labels), "{case}: {metrics}");
        }
        let failures = metrics
            .lines()
            .filter(|line| line.starts_with("proxy_failures_total{"));
        let failures: Vec<_> = failures.collect();
        match cause {
            None => assert!(failures.is_empty(), "{case}: {failures:?}"),
            Some(cause) => {
                let label = format!("cause=\"{cause}\"");
                assert!(
                    failures.len() == 1 && failures[0].contains(&label),
                    "{case}: {failures:?}"
                );
            }
        }
    }
}
