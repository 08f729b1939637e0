//! The policies that routes have, of those that the configuration defines.

use std::sync::Arc;
use std::time::Duration;

use super::*;
use crate::config::{PolicyConfig, PolicyConfigs, PolicyKind};
use crate::{Change, TimeSpan, apply, diff};

fn policies(named: &[(PolicyKind, &str)]) -> Arc<PolicyConfigs> {
    let mut policies = PolicyConfigs::default();
    for &(kind, name) in named {
        let is_new = policies.insert(PolicyConfig {
            kind,
            name: name.into(),
            settings: json!({ "of": name }),
            timeout: (kind == PolicyKind::Timeout).then_some(TimeSpan::from_secs(7)),
        });
        assert!(is_new);
    }
    Arc::new(policies)
}

fn with(route: Value, named: &[(PolicyKind, &str)]) -> ProxyConfig {
    ProxyConfig {
        policies: policies(named),
        ..config(super::route(route))
    }
}

#[test]
fn routes_have_the_policies_that_they_name_and_those_by_default() {
    use PolicyKind::{Authorization, Cors, RateLimiter};
    let defined = [
        (RateLimiter, "Global"),
        (RateLimiter, "few"),
        (Authorization, "Fallback"),
        (Authorization, "staff"),
        (Cors, "Default"),
        (Cors, "web"),
    ];
    for (route, expected) in [
        (json!({}), "Authorization Fallback, RateLimiter Global"),
        (
            json!({ "AuthorizationPolicy": "STAFF", "RateLimiterPolicy": "Few", "CorsPolicy": "web" }),
            "Cors web, Authorization staff, RateLimiter Global, RateLimiter few",
        ),
        (
            json!({ "AuthorizationPolicy": "anonymous", "RateLimiterPolicy": "disable", "CorsPolicy": "disable" }),
            "Cors Disable",
        ),
        (
            json!({ "AuthorizationPolicy": "Default", "RateLimiterPolicy": "Default", "CorsPolicy": "default" }),
            "Cors Default, Authorization Default (nobody's), RateLimiter Global",
        ),
        // Named and by default at once, it is one.
        (
            json!({ "RateLimiterPolicy": "global", "AuthorizationPolicy": "fallback" }),
            "Authorization Fallback, RateLimiter Global",
        ),
    ] {
        let config = with(route.clone(), &defined);
        let (snapshot, problems) = Snapshot::compile(config, &options()).unwrap();
        assert!(problems.is_empty(), "{problems}");
        let policies = snapshot.routes()[0].policies().iter();
        let said: Vec<_> = policies
            .map(|policy| {
                let undefined = if policy.is_defined() {
                    ""
                } else {
                    " (nobody's)"
                };
                format!("{} {}{undefined}", policy.kind().section(), policy.name())
            })
            .collect();
        assert_eq!(said.join(", "), expected, "{route}");
    }
    assert!(accepted(route(json!({}))).routes()[0].policies().is_empty());
}

#[test]
fn timeouts_have_the_time_of_their_policy() {
    let defined = [
        (PolicyKind::Timeout, "slow"),
        (PolicyKind::RateLimiter, "few"),
    ];
    for (route, expected) in [
        (json!({ "TimeoutPolicy": "SLOW" }), Some(7)),
        (json!({ "TimeoutPolicy": "Disable" }), None),
        (json!({ "Timeout": "3s" }), Some(3)),
        (json!({}), None),
    ] {
        let (snapshot, _) = Snapshot::compile(with(route, &defined), &options()).unwrap();
        let timeout = snapshot.routes()[0].timeout();
        assert_eq!(timeout, expected.map(Duration::from_secs));
    }
    let both = with(
        json!({ "TimeoutPolicy": "slow", "Timeout": "3s" }),
        &defined,
    );
    assert!(Snapshot::compile(both, &options()).is_err());
    // A name of another kind is unknown.
    let other = with(json!({ "TimeoutPolicy": "few" }), &defined);
    let problems = Snapshot::compile(other, &options()).unwrap_err();
    let expected = [(
        Severity::Error,
        "unknown_timeout_policy",
        "/Routes/r/TimeoutPolicy",
    )];
    assert_eq!(found(&problems), expected);
}

#[test]
fn policies_count_for_the_revision_and_are_no_part_of_the_json() {
    let revision = |config: &ProxyConfig| crate::Revision::of(config);
    let without = with(json!({}), &[]);
    let few = with(json!({}), &[(PolicyKind::RateLimiter, "few")]);
    let cors = with(json!({}), &[(PolicyKind::Cors, "few")]);
    assert_eq!(revision(&without), revision(&config(route(json!({})))));
    assert_ne!(revision(&few), revision(&without));
    assert_ne!(revision(&few), revision(&cors));
    let text = serde_json::to_string(&few).unwrap();
    assert!(!text.contains("few"), "{text}");
    assert!(
        !format!("{few:?}").contains("\"of\""),
        "settings may be secrets"
    );

    let changes = diff(&without, &few);
    let said: Vec<_> = changes.iter().map(Change::to_string).collect();
    assert_eq!(said, ["policies changed: RateLimiter few"]);
    assert_eq!(apply(&without, &changes), few);
    let shown = serde_json::to_string(&changes).unwrap();
    assert!(!shown.contains("\"of\""), "{shown}");
}
