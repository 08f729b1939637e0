//! Tests that unsupported settings are reported.

use xds_types::pb::envoy::config::route::v3::route::Action;

use super::super::{DIFFERS, LEFT_OUT};
use super::{bridged, hosts};

/// Returns the problems of a route that has `more` in addition to its criteria.
fn said(path: &str, more: &str) -> (Vec<(String, String)>, Option<u32>) {
    let json = format!(
        r#"{{"Routes":{{"a/b":{{"Match":{{"Path":"{path}"}},{more}}}}},
            "Clusters":{{"c":{{"Destinations":{{"d":{{"Address":"http://10.0.0.1/"}}}}}},
                "two":{{"Destinations":{{"x":{{"Address":"http://10.0.0.1/x"}},"y":{{"Address":"http://10.0.0.1/y"}}}}}}}}}}"#
    );
    let (_, bridged) = bridged(&json);
    let found = (bridged.problems.iter())
        .map(|problem| (problem.pointer.clone(), problem.code.to_string()))
        .collect();
    let answered = hosts(&bridged)
        .first()
        .and_then(|host| match &host.routes[0].action {
            Some(Action::DirectResponse(answer)) => Some(answer.status),
            _ => None,
        });
    (found, answered)
}

#[test]
fn a_route_that_envoy_cannot_follow_is_rejected_and_named() {
    for (path, more, key) in [
        ("/{**r}", r#""ClusterId":"two""#, "ClusterId"),
        (
            "/{**r}",
            r#""ClusterId":"c","AuthorizationPolicy":"staff""#,
            "AuthorizationPolicy",
        ),
        (
            "/{**r}",
            r#""ClusterId":"c","StrictPaths":true"#,
            "StrictPaths",
        ),
        (
            "/{**r}",
            r#""ClusterId":"c","Filters":["audit"]"#,
            "Filters",
        ),
        (
            "/{**r}",
            r#""ClusterId":"c","Transforms":[{"QueryValueParameter":"a","Set":"b"}]"#,
            "Transforms",
        ),
        (
            "/{**r}",
            r#""ClusterId":"c","Transforms":[{"HttpMethodChange":"GET","Set":"PUT"}]"#,
            "Transforms",
        ),
        (
            "/{**r}",
            r#""ClusterId":"c","Transforms":[{"RequestHeadersCopy":"false"}]"#,
            "Transforms",
        ),
        (
            "/{**r}",
            r#""ClusterId":"c","Transforms":[{"RequestHeaderRouteValue":"a","Set":"r"}]"#,
            "Transforms",
        ),
        (
            "/{**r}",
            r#""ClusterId":"c","Transforms":[{"Forwarded":"for"}]"#,
            "Transforms",
        ),
        (
            "/{**r}",
            r#""ClusterId":"c","Transforms":[{"ClientCert":"x-cert"}]"#,
            "Transforms",
        ),
        (
            "/{**r}",
            r#""ClusterId":"c","Transforms":[{"ResponseTrailer":"a","Set":"b"}]"#,
            "Transforms",
        ),
        (
            "/{**r}",
            r#""ClusterId":"c","Transforms":[{"PathPrefix":"/a"},{"PathRemovePrefix":"/b"}]"#,
            "Transforms",
        ),
        (
            "/{a}/{**r}",
            r#""ClusterId":"c","Transforms":[{"PathPattern":"/{r}"}]"#,
            "Transforms",
        ),
        (
            "/{a?}",
            r#""ClusterId":"c","Transforms":[{"PathPattern":"/x/{a}"}]"#,
            "Transforms",
        ),
        (
            "/{id}",
            r#""PartitionedClusters":{"Key":{"RouteValue":"id"},"Partitions":[{"ClusterId":"c","LowKey":0,"HighKey":9}]}"#,
            "PartitionedClusters",
        ),
    ] {
        let (found, answered) = said(path, more);
        let expected = (format!("/Routes/a~1b/{key}"), LEFT_OUT.to_owned());
        assert_eq!((found, answered), (vec![expected], Some(503)), "{more}");
    }
}

#[test]
fn a_route_of_which_envoy_cannot_say_what_it_matches_is_left_out_and_named() {
    for path in [
        "/{a:regex(^a.b$)}",
        "/{a:datetime}",
        "/{a:alpha:bool}",
        "/{a:length(2,900)}",
        "/{a:guid}/{b:guid}",
        "/{a}-{b:int}",
        "/v{a}.{b?}",
        "/{a=1}/{**b:file}",
    ] {
        let (found, _) = said(path, r#""ClusterId":"c""#);
        let expected = ("/Routes/a~1b/Match/Path".to_owned(), LEFT_OUT.to_owned());
        assert_eq!(found.last(), Some(&expected), "{path}");
    }
    let (_, bridged) = bridged(
        r#"{"Routes":{"r":{"Match":{"Path":"/","Headers":[{"Name":"a","Values":["x,y"]}]}}}}"#,
    );
    assert!(hosts(&bridged).is_empty());
    let problem = bridged.problems.iter().next().unwrap();
    assert_eq!(
        (&*problem.pointer, &*problem.code),
        ("/Routes/r/Match/Headers", LEFT_OUT)
    );
}

#[test]
fn what_envoy_does_differently_is_published_and_named() {
    for (path, more, key) in [
        ("/{id:int}", r#""ClusterId":"c""#, "Match/Path"),
        ("/", r#""ClusterId":"c","Timeout":"5s""#, "Timeout"),
        (
            "/",
            r#""ClusterId":"c","MaxRequestBodySize":10"#,
            "MaxRequestBodySize",
        ),
        (
            "/",
            r#""ClusterId":"c","CorsPolicy":"Default""#,
            "CorsPolicy",
        ),
        (
            "/",
            r#""ClusterId":"c","Transforms":[{"ResponseHeader":"a","Set":"b"}]"#,
            "Transforms",
        ),
    ] {
        let (found, answered) = said(path, more);
        let expected = (format!("/Routes/a~1b/{key}"), DIFFERS.to_owned());
        assert_eq!((found, answered), (vec![expected], None), "{more}");
    }
}

#[test]
fn a_route_without_a_cluster_answers_503_and_nothing_is_said() {
    assert_eq!(said("/", r#""Order":1"#), (Vec::new(), Some(503)));
}

#[test]
fn clusters_are_named_too() {
    let (_, bridged) = bridged(
        r#"{"Clusters":{
            "http3":{"HttpRequest":{"Version":"3","VersionPolicy":"RequestVersionExact"}},
            "odd":{"LoadBalancingPolicy":"nearest","HttpClient":{"WebProxy":{"Address":"http://p:1/"}},
                "SessionAffinity":{"Enabled":true,"AffinityKeyName":"k","FailurePolicy":"Return503Error"},
                "HealthCheck":{"Passive":{"Enabled":true}}},
            "first":{"LoadBalancingPolicy":"FirstAlphabetical"}}}"#,
    );
    let found: Vec<_> = (bridged.problems.iter())
        .map(|problem| (&*problem.pointer, &*problem.code))
        .collect();
    assert_eq!(
        found,
        [
            ("/Clusters/http3/HttpRequest/Version", LEFT_OUT),
            ("/Clusters/odd/HttpClient/WebProxy", DIFFERS),
            ("/Clusters/odd/SessionAffinity", DIFFERS),
            ("/Clusters/odd/SessionAffinity/FailurePolicy", DIFFERS),
            ("/Clusters/odd/HealthCheck/Passive", DIFFERS),
            ("/Clusters/first/LoadBalancingPolicy", DIFFERS),
        ]
    );
    assert_eq!(bridged.services.len(), 2);
}
