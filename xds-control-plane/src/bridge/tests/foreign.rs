//! Resources of other control planes.

#![expect(deprecated, reason = "others still send these fields")]

use envoy_types::pb::envoy::config::cluster::v3::Cluster;
use envoy_types::pb::envoy::config::route::v3::header_matcher::HeaderMatchSpecifier;
use envoy_types::pb::envoy::config::route::v3::route::Action;
use envoy_types::pb::envoy::config::route::v3::route_action::ClusterSpecifier;
use envoy_types::pb::envoy::config::route::v3::route_match::{
    GrpcRouteMatchOptions, PathSpecifier,
};
use envoy_types::pb::envoy::config::route::v3::{
    HeaderMatcher, RedirectAction, Route, RouteAction, RouteConfiguration, RouteMatch, VirtualHost,
};
use envoy_types::pb::google::protobuf::Duration;
use proxy_model::config::ProxyConfig;
use proxy_model::matching::Lookup;
use proxy_model::{CompileOptions, Problems, Snapshot};

use super::super::re2;
use super::super::{NOT_HONOURED, ReadRoutes, read_cluster, read_routes};
use super::envoy::Request;

fn to(cluster: &str, path: PathSpecifier) -> Route {
    Route {
        name: cluster.into(),
        r#match: Some(RouteMatch {
            path_specifier: Some(path),
            ..RouteMatch::default()
        }),
        action: Some(Action::Route(RouteAction {
            cluster_specifier: Some(ClusterSpecifier::Cluster(cluster.into())),
            ..RouteAction::default()
        })),
        ..Route::default()
    }
}

fn host(domains: &[&str], routes: Vec<Route>) -> VirtualHost {
    VirtualHost {
        name: domains[0].into(),
        domains: domains.iter().map(|domain| (*domain).to_owned()).collect(),
        routes,
        ..VirtualHost::default()
    }
}

fn read(hosts: Vec<VirtualHost>) -> Result<(ReadRoutes, Problems), Problems> {
    read_routes(&RouteConfiguration {
        name: "main".into(),
        virtual_hosts: hosts,
        ..RouteConfiguration::default()
    })
}

fn snapshot(hosts: Vec<VirtualHost>) -> Snapshot {
    let (read, _) = read(hosts).unwrap();
    let config = ProxyConfig {
        routes: read.routes,
        ..ProxyConfig::default()
    };
    Snapshot::compile(config, &CompileOptions::default())
        .unwrap()
        .0
}

fn taken(snapshot: &Snapshot, request: &Request) -> String {
    match snapshot.find(request) {
        Lookup::Matched(index) => snapshot.route_at(index).id().as_str().to_owned(),
        _ => String::new(),
    }
}

#[test]
fn paths_and_hosts_are_tried_as_envoy_tries_them() {
    let prefix = |prefix: &str| PathSpecifier::Prefix(prefix.into());
    let snapshot = snapshot(vec![
        host(
            &["*"],
            vec![
                to("specific", PathSpecifier::Path("/very/specific".into())),
                to("all", prefix("/")),
            ],
        ),
        host(&["*.a.test"], vec![to("wide", prefix("/w/"))]),
        host(
            &["a.test", "a.test:*", "a.test:80"],
            vec![
                to("begun", prefix("/v1/be.g")),
                to("first", prefix("/v1/")),
                to(
                    "regex",
                    PathSpecifier::SafeRegex(re2::matcher("/r/[a-c]{2}(?:x|y)/?")),
                ),
                to("later", PathSpecifier::Path("/v1/later".into())),
            ],
        ),
    ]);
    for (host, path, route) in [
        ("o", "/very/specific", "*/specific"),
        ("o", "/x", "*/all"),
        ("a.test", "/v1/x", "a.test/first"),
        ("a.test:81", "/v1/later", "a.test/first"),
        ("a.test", "/v1/be.gun", "a.test/begun"),
        ("a.test", "/v1/bexg", "a.test/first"),
        ("a.test", "/r/aby", "a.test/regex"),
        ("a.test", "/r/adx", "a.test/otherwise"),
        ("a.test", "/very/specific", "a.test/otherwise"),
        ("b.a.test", "/w/x", "*.a.test/wide"),
        ("b.a.test", "/very/specific", "*.a.test/otherwise"),
    ] {
        assert_eq!(
            taken(&snapshot, &Request::get(host, path)),
            route,
            "{host} {path}"
        );
    }
}

/// The pointers of what is not honoured.
fn refused(change: impl FnOnce(&mut Route)) -> Vec<String> {
    let mut route = to("c", PathSpecifier::Prefix("/".into()));
    change(&mut route);
    let problems = read(vec![host(&["*"], vec![route])]).unwrap_err();
    assert!(
        problems
            .errors()
            .all(|problem| problem.code == NOT_HONOURED)
    );
    problems
        .errors()
        .map(|problem| problem.pointer.clone())
        .collect()
}

#[test]
fn what_cannot_be_honoured_is_refused_by_name() {
    let place = "/route_configuration/main/*/c/";
    let matched = |change: fn(&mut RouteMatch)| {
        move |route: &mut Route| change(route.r#match.as_mut().unwrap())
    };
    let action = |change: fn(&mut RouteAction)| {
        move |route: &mut Route| match route.action.as_mut().unwrap() {
            Action::Route(action) => change(action),
            other => panic!("{other:?}"),
        }
    };
    let expect = |found: Vec<String>, field: &str| assert_eq!(found, [format!("{place}{field}")]);
    expect(
        refused(matched(|wanted| {
            wanted.grpc = Some(GrpcRouteMatchOptions::default())
        })),
        "match/grpc",
    );
    expect(
        refused(matched(|wanted| {
            wanted.path_specifier = Some(PathSpecifier::SafeRegex(re2::matcher("/a|/b")));
        })),
        "match/path_specifier",
    );
    expect(
        refused(matched(|wanted| {
            wanted.headers.push(HeaderMatcher {
                name: "x".into(),
                header_match_specifier: Some(HeaderMatchSpecifier::SuffixMatch("y".into())),
                ..HeaderMatcher::default()
            });
        })),
        "match/headers~1x/header_match_specifier",
    );
    expect(
        refused(action(|action| {
            action.cluster_specifier = Some(ClusterSpecifier::ClusterHeader("x".into()))
        })),
        "route/cluster_specifier",
    );
    expect(
        refused(action(|action| {
            action.regex_rewrite = Some(re2::substitution("a", "b"))
        })),
        "route/regex_rewrite",
    );
    let mut found =
        refused(|route| route.action = Some(Action::Redirect(RedirectAction::default())));
    assert_eq!(found.remove(0), format!("{place}action"));
    let domain = read(vec![host(&["a.*"], vec![])]).unwrap_err();
    assert_eq!(
        domain.iter().next().unwrap().pointer,
        "/route_configuration/main/a.*/domains"
    );
    let cluster = read_cluster(&Cluster {
        name: "c".into(),
        filters: vec![Default::default()],
        ..Cluster::default()
    });
    assert_eq!(
        cluster.unwrap_err().iter().next().unwrap().pointer,
        "/cluster/c/filters"
    );
}

#[test]
fn timeouts_and_prefixes_have_envoys_meaning() {
    let mut route = to("c", PathSpecifier::PathSeparatedPrefix("/api".into()));
    let Some(Action::Route(action)) = &mut route.action else {
        unreachable!()
    };
    action.prefix_rewrite = "/v2/".into();
    let none = to("d", PathSpecifier::Prefix("/".into()));
    let mut zero = to("e", PathSpecifier::Prefix("/e".into()));
    let Some(Action::Route(action)) = &mut zero.action else {
        unreachable!()
    };
    action.timeout = Some(Duration::default());
    let (read, problems) = read(vec![host(&["*"], vec![route, none, zero])]).unwrap();
    let timeout = |id: &str| {
        read.routes[&proxy_model::RouteId::from(id)]
            .timeout
            .map(|span| span.duration().as_secs())
    };
    assert_eq!(
        (timeout("*/c"), timeout("*/d"), timeout("*/e")),
        (Some(15), Some(15), None)
    );
    let keys: Vec<_> = (read.routes[0].transforms.iter().flatten())
        .map(|transform| transform.get_index(0).unwrap())
        .map(|(key, value)| format!("{key} {value}"))
        .collect();
    assert_eq!(
        keys,
        [
            "X-Forwarded Off",
            "PathRemovePrefix /api",
            "PathPrefix /v2",
            "RequestHeaderOriginalHost true"
        ]
    );
    assert!(
        problems
            .iter()
            .any(|problem| problem.pointer.ends_with("/route/timeout"))
    );
}
