//! Tests of routes behind policies: Envoy has none of them, so that what keeps clients out closes the route.

use std::sync::Arc;

use discovery_xds::read::read_routes;
use proxy_model::config::{PolicyConfig, PolicyConfigs, PolicyKind, ProxyConfig};
use proxy_model::{CompileOptions, RouteId, Snapshot};
use serde_json::Value;
use xds_types::pb::envoy::config::route::v3::Route;
use xds_types::pb::envoy::config::route::v3::RouteConfiguration;
use xds_types::pb::envoy::config::route::v3::route::Action;

use super::super::{BridgeOptions, Bridged, DIFFERS, LEFT_OUT, to_envoy};
use super::envoy::{Request, find};
use super::hosts;

const CLUSTERS: &str = r#""Clusters":{"c":{"Destinations":{"d":{"Address":"http://10.0.0.1/"}}}}"#;

fn bridged(routes: &str, defined: &[(PolicyKind, &str)], options: &BridgeOptions) -> Bridged {
    let text = format!(r#"{{"Routes":{{{routes}}},{CLUSTERS}}}"#);
    let mut config = ProxyConfig::from_json(&text).unwrap();
    let mut policies = PolicyConfigs::default();
    for (kind, name) in defined {
        policies.insert(PolicyConfig {
            kind: *kind,
            name: Arc::from(*name),
            settings: Value::Null,
            timeout: (*kind == PolicyKind::Timeout).then(|| "7s".parse().unwrap()),
        });
    }
    config.policies = Arc::new(policies);
    let (snapshot, _) = Snapshot::compile(config, &CompileOptions::default()).unwrap();
    to_envoy("test", &snapshot, options)
}

fn is_closed(route: &Route) -> bool {
    matches!(&route.action, Some(Action::DirectResponse(answer)) if answer.status == 503)
}

/// Returns true if Envoy would send a request for `target` to a cluster, or answer it as the route does.
fn is_open(bridged: &Bridged, target: &str) -> bool {
    let hosts = hosts(bridged);
    let route = find(&hosts, &Request::get("a.test", target));
    !is_closed(route.unwrap_or_else(|| panic!("no route takes {target}")))
}

fn codes(bridged: &Bridged) -> Vec<(&str, &str)> {
    let problems = bridged.problems.iter();
    problems.map(|one| (&*one.pointer, &*one.code)).collect()
}

const WIDE: &str =
    r#""wide":{"ClusterId":"c","AuthorizationPolicy":"Anonymous","Match":{"Path":"/{**r}"}}"#;

#[test]
fn a_route_behind_a_policy_is_closed_and_no_other_route_gets_its_requests() {
    for (target, order) in [
        (r#""ClusterId":"c""#, ""),
        (
            r#""WeightedClusters":[{"ClusterId":"c"},{"ClusterId":"gone"}]"#,
            "",
        ),
        (r#""Redirect":{"Scheme":"https"}"#, ""),
        (r#""Respond":{"Body":"for staff"}"#, ""),
        (r#""ClusterId":"c""#, r#","Order":-5"#),
        (
            r#""ClusterId":"c","RateLimiterPolicy":"few","StrictPaths":true"#,
            "",
        ),
    ] {
        for (name, defined) in [("staff", "staff"), ("Default", "other"), ("", "Fallback")] {
            let routes = format!(
                r#"{WIDE},"r":{{{target},"AuthorizationPolicy":"{name}","Match":{{"Path":"/staff/{{**r}}"}}{order}}}"#
            );
            let defined = [
                (PolicyKind::Authorization, defined),
                (PolicyKind::RateLimiter, "few"),
            ];
            let bridged = bridged(&routes, &defined, &BridgeOptions::default());
            assert!(!is_open(&bridged, "/staff/x"), "{routes}");
            assert!(is_open(&bridged, "/x"), "{routes}");
            assert_eq!(
                codes(&bridged),
                [("/Routes/r/AuthorizationPolicy", LEFT_OUT)],
                "{routes}"
            );
            let told = bridged.problems.to_string();
            let named = if name.is_empty() { "Fallback" } else { name };
            assert!(
                told.contains(&format!("the policy `{named}` of `Policies.Authorization`")),
                "{told}"
            );
        }
    }
}

#[test]
fn a_route_behind_a_policy_whose_criteria_have_no_form_in_envoy_closes_more() {
    let criteria = [
        r#""Path":"/Staff/{day:datetime}""#,
        r#""Path":"/staff/{**r}","Headers":[{"Name":"a","Values":["x,y"]}]"#,
    ];
    for criteria in criteria {
        let routes = format!(
            r#"{WIDE},"open":{{"ClusterId":"c","Match":{{"Path":"/staff/open"}}}},
            "r":{{"ClusterId":"c","AuthorizationPolicy":"staff","Match":{{{criteria}}}}}"#
        );
        let defined = [(PolicyKind::Authorization, "staff")];
        let bridged = bridged(&routes, &defined, &BridgeOptions::default());
        assert!(!is_open(&bridged, "/staff/2026-11-28"), "{criteria}");
        assert!(!is_open(&bridged, "/STAFF/other"), "{criteria}");
        assert!(is_open(&bridged, "/staffroom"), "{criteria}");
        // It comes before the route, as it does in the proxy.
        assert!(is_open(&bridged, "/staff/open"), "{criteria}");
        let told = bridged.problems.to_string();
        assert!(told.contains("all requests for paths below `/"), "{told}");
    }
}

#[test]
fn limits_and_cors_that_are_lost_are_told() {
    let routes = r#""r":{"ClusterId":"c","RateLimiterPolicy":"few","CorsPolicy":"site","TimeoutPolicy":"short",
        "Match":{"Path":"/{**r}"}},
        "free":{"ClusterId":"c","RateLimiterPolicy":"Disable","CorsPolicy":"Disable","Match":{"Path":"/free"}}"#;
    let defined = [
        (PolicyKind::RateLimiter, "few"),
        (PolicyKind::RateLimiter, "Global"),
        (PolicyKind::Cors, "site"),
        (PolicyKind::Timeout, "short"),
    ];
    let bridged = bridged(routes, &defined, &BridgeOptions::default());
    assert!(is_open(&bridged, "/x") && is_open(&bridged, "/free"));
    let lost = "/Routes/r/RateLimiterPolicy";
    assert_eq!(
        codes(&bridged),
        [
            ("/Routes/r/CorsPolicy", DIFFERS),
            (lost, DIFFERS),
            (lost, DIFFERS),
            // A defined timeout is one that Envoy has.
            ("/Routes/r/Timeout", DIFFERS),
        ]
    );
    let host = hosts(&bridged).remove(0);
    let route = host.routes.iter().find(|route| route.name == "r");
    let Some(Action::Route(action)) = &route.unwrap().action else {
        panic!("{host:?}");
    };
    assert_eq!(action.timeout.as_ref().unwrap().seconds, 7);
}

/// A gateway without the policy would leave the route out, and one without `Fallback` would open it.
#[test]
fn gateways_get_a_route_behind_a_policy_closed_too() {
    for (name, defined) in [("staff", "staff"), ("", "Fallback")] {
        let routes = format!(
            r#"{WIDE},"r":{{"ClusterId":"c","AuthorizationPolicy":"{name}","Match":{{"Path":"/staff/{{**r}}"}},"Order":2}}"#
        );
        let options = BridgeOptions::default().with_carried_source(true);
        let bridged = bridged(&routes, &[(PolicyKind::Authorization, defined)], &options);
        let written = RouteConfiguration {
            name: "main".into(),
            virtual_hosts: hosts(&bridged),
            ..RouteConfiguration::default()
        };
        let (routes, problems) = read_routes(&written).unwrap();
        assert!(problems.is_empty(), "{problems}");
        let composed =
            discovery_xds::read::compose([&routes], &Default::default(), &Default::default());
        let route = &composed.config.routes[&RouteId::from("r")];
        assert_eq!(route.cluster_id, None, "{route:?}");
        assert_eq!(route.authorization_policy, None, "{route:?}");
        assert_eq!(route.order, Some(2));
        assert_eq!(route.r#match.path.as_deref(), Some("/staff/{**r}"));
    }
}
