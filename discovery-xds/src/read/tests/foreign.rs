//! Resources of other control planes.

#![expect(deprecated, reason = "others still send these fields")]

use proxy_model::config::ProxyConfig;
use proxy_model::matching::Lookup;
use proxy_model::{CompileOptions, Problems, RouteId, Snapshot};
use xds_types::pb::envoy::config::cluster::v3::Cluster;
use xds_types::pb::envoy::config::route::v3::header_matcher::HeaderMatchSpecifier;
use xds_types::pb::envoy::config::route::v3::route::Action;
use xds_types::pb::envoy::config::route::v3::route_action::ClusterSpecifier;
use xds_types::pb::envoy::config::route::v3::route_match::{GrpcRouteMatchOptions, PathSpecifier};
use xds_types::pb::envoy::config::route::v3::{
    HeaderMatcher, RedirectAction, Route, RouteAction, RouteConfiguration, RouteMatch, VirtualHost,
};
use xds_types::pb::envoy::r#type::matcher::v3::StringMatcher;
use xds_types::pb::envoy::r#type::matcher::v3::string_matcher::MatchPattern;
use xds_types::pb::google::protobuf::Duration;

use super::super::{NOT_HONOURED, ReadRoutes, read_cluster, read_routes, read_routes_after};
use super::{Request, matcher, substitution};

pub(super) fn to(cluster: &str, path: PathSpecifier) -> Route {
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

pub(super) fn host(domains: &[&str], routes: Vec<Route>) -> VirtualHost {
    VirtualHost {
        name: domains[0].into(),
        domains: domains.iter().map(|domain| (*domain).to_owned()).collect(),
        routes,
        ..VirtualHost::default()
    }
}

pub(super) fn read(hosts: Vec<VirtualHost>) -> Result<(ReadRoutes, Problems), Problems> {
    read_routes(&RouteConfiguration {
        name: "main".into(),
        virtual_hosts: hosts,
        ..RouteConfiguration::default()
    })
}

pub(super) fn snapshot(hosts: Vec<VirtualHost>) -> Snapshot {
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
                    PathSpecifier::SafeRegex(matcher("/r/[a-c]{2}(?:x|y)/?")),
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

/// Returns the pointers of a route's unsupported parts. Its requests are answered with 503.
fn rejected(change: impl FnOnce(&mut Route)) -> Vec<String> {
    let mut route = to("c", PathSpecifier::Prefix("/".into()));
    change(&mut route);
    let behind = to("behind", PathSpecifier::Prefix("/".into()));
    let hosts = vec![host(&["*"], vec![route, behind])];
    let (read, problems) = read(hosts).unwrap();
    assert!(
        problems
            .errors()
            .all(|problem| problem.code == NOT_HONOURED)
    );
    let rejected = &read.routes[&RouteId::from("*/c")];
    assert_eq!(
        (&rejected.cluster_id, &rejected.weighted_clusters),
        (&None, &None)
    );
    let behind = &read.routes[&RouteId::from("*/behind")];
    assert_eq!(behind.cluster_id.as_ref().unwrap().as_str(), "behind");
    problems
        .errors()
        .map(|problem| problem.pointer.clone())
        .collect()
}

#[test]
fn what_cannot_be_honoured_is_rejected_by_name() {
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
        rejected(matched(|wanted| {
            wanted.grpc = Some(GrpcRouteMatchOptions::default())
        })),
        "match/grpc",
    );
    expect(
        rejected(matched(|wanted| {
            wanted.path_specifier = Some(PathSpecifier::SafeRegex(matcher("/a|/b")));
        })),
        "match/path_specifier",
    );
    expect(
        rejected(matched(|wanted| {
            wanted.headers.push(HeaderMatcher {
                name: "x".into(),
                header_match_specifier: Some(HeaderMatchSpecifier::SuffixMatch("y".into())),
                ..HeaderMatcher::default()
            });
        })),
        "match/headers~1x/header_match_specifier",
    );
    expect(
        rejected(action(|action| {
            action.cluster_specifier = Some(ClusterSpecifier::ClusterHeader("x".into()))
        })),
        "route/cluster_specifier",
    );
    expect(
        rejected(action(|action| {
            action.regex_rewrite = Some(substitution("a", "b"))
        })),
        "route/regex_rewrite",
    );
    expect(
        rejected(|route| route.action = Some(Action::Redirect(RedirectAction::default()))),
        "redirect/host_redirect",
    );
    expect(rejected(|route| route.r#match = None), "match");
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

/// One route more must not take the service away that was there before it.
#[test]
fn a_condition_that_is_not_known_leaves_a_virtual_host_as_it_was() {
    let prefix = |prefix: &str| PathSpecifier::Prefix(prefix.into());
    let unknown = || {
        let mut unknown = to("canary", prefix("/"));
        unknown.r#match.as_mut().unwrap().grpc = Some(GrpcRouteMatchOptions::default());
        unknown
    };
    let configuration = |routes: Vec<Route>| RouteConfiguration {
        name: "main".to_owned(),
        virtual_hosts: vec![
            host(&["a", "b"], routes),
            host(&["c"], vec![to("c", prefix("/"))]),
        ],
        ..RouteConfiguration::default()
    };
    let clusters = |read: &ReadRoutes| -> Vec<String> {
        let ids = read.routes.values().map(|route| &route.cluster_id);
        ids.flatten().map(ToString::to_string).collect()
    };
    let good = configuration(vec![to("a", prefix("/"))]);
    let (first, problems) = read_routes(&good).unwrap();
    assert!(!problems.has_errors());

    let next = configuration(vec![unknown(), to("other", prefix("/"))]);
    let (second, problems) = read_routes_after(&next, Some(&first)).unwrap();
    assert!(problems.has_errors());
    assert_eq!(clusters(&second), ["a", "c"]);
    // Once more, and it is still the last known good form.
    let (third, _) = read_routes_after(&next, Some(&second)).unwrap();
    assert_eq!(clusters(&third), ["a", "c"]);
    // Without one, or if something else is wanted that cannot be honoured, it is as careful as ever.
    let (alone, _) = read_routes(&next).unwrap();
    assert_eq!(clusters(&alone), ["other", "c"]);
    let mut strict = configuration(vec![unknown(), to("other", prefix("/"))]);
    strict.virtual_hosts[0].require_tls = 2;
    let (strict, _) = read_routes_after(&strict, Some(&first)).unwrap();
    assert_eq!(clusters(&strict), ["c"]);
    // Once corrected, it is the new one.
    let mended = configuration(vec![to("other", prefix("/"))]);
    let (mended, problems) = read_routes_after(&mended, Some(&third)).unwrap();
    assert!(!problems.has_errors());
    assert_eq!(clusters(&mended), ["other", "c"]);
}

/// Returns the results of requests to a virtual host with rejected routes, by `host path`.
pub(super) fn answers(hosts: Vec<VirtualHost>, requests: &[(&str, &str)]) -> Vec<String> {
    let snapshot = snapshot(hosts);
    let answer = |(host, path): &(&str, &str)| match snapshot.find(&Request::get(host, path)) {
        Lookup::Matched(index) => match &snapshot.route_at(index).config().cluster_id {
            Some(cluster) => cluster.as_str().to_owned(),
            None => "503".to_owned(),
        },
        _ => "404".to_owned(),
    };
    requests.iter().map(answer).collect()
}

#[test]
fn what_is_rejected_gets_to_no_other_route_and_takes_no_more_than_it_has_to() {
    let prefix = |prefix: &str| PathSpecifier::Prefix(prefix.into());
    let mut redirect = to("redirect", prefix("/old/"));
    redirect.action = Some(Action::Redirect(RedirectAction::default()));
    let mut unknown = to("unknown", prefix("/grpc/"));
    unknown.r#match.as_mut().unwrap().grpc = Some(GrpcRouteMatchOptions::default());
    let mut broken = to("broken", prefix("/broken/"));
    broken
        .r#match
        .as_mut()
        .unwrap()
        .headers
        .push(HeaderMatcher {
            name: "no name".into(),
            ..HeaderMatcher::default()
        });
    let mut only_tls = host(&["tls.a"], vec![to("tls", prefix("/"))]);
    only_tls.require_tls = 2;
    let hosts = vec![
        host(&["*"], vec![to("any", prefix("/"))]),
        host(&["a"], vec![redirect, unknown, to("a", prefix("/"))]),
        host(
            &["b"],
            vec![to("early", prefix("/early/")), broken, to("b", prefix("/"))],
        ),
        only_tls,
    ];
    let requests = [
        ("o", "/old/"),
        ("a", "/old/x"),
        ("a", "/grpc/x"),
        ("a", "/x"),
        ("b", "/early/"),
        // What does not compile is known too late to know what else it matches.
        ("b", "/x"),
        ("tls.a", "/x"),
    ];
    assert_eq!(
        answers(hosts, &requests),
        ["any", "503", "503", "a", "early", "503", "503"]
    );
}

#[test]
fn names_that_are_there_twice_are_two() {
    let prefix = |prefix: &str| PathSpecifier::Prefix(prefix.into());
    let mut again = host(&["b"], vec![to("r", prefix("/"))]);
    again.name = "a".into();
    let mut second = to("second", prefix("/"));
    second.name = "r".into();
    let hosts = vec![host(&["a"], vec![to("r", prefix("/r/")), second]), again];
    let requests = [("a", "/r/"), ("a", "/"), ("b", "/")];
    assert_eq!(answers(hosts, &requests), ["r", "second", "r"]);
}

#[test]
fn headers_are_matched_as_far_as_the_model_can() {
    use HeaderMatchSpecifier::{PresentMatch, SafeRegexMatch, StringMatch};
    let regex = |regex: &str| {
        Some(StringMatch(StringMatcher {
            match_pattern: Some(MatchPattern::SafeRegex(matcher(regex))),
            ..StringMatcher::default()
        }))
    };
    let legacy = |regex: &str| Some(SafeRegexMatch(matcher(regex)));
    for (specifier, invert, as_empty, value, wanted) in [
        (
            regex("1|[yY]es|[tT]rue"),
            false,
            false,
            Some("Yes"),
            Ok(true),
        ),
        (
            regex("1|[yY]es|[tT]rue"),
            false,
            false,
            Some("YES"),
            Ok(false),
        ),
        (
            regex("1|[yY]es|[tT]rue"),
            false,
            false,
            Some("11"),
            Ok(false),
        ),
        (legacy("(?i)fix\\-1"), false, false, Some("FIX-1"), Ok(true)),
        (
            legacy("(?i)fix\\-1"),
            false,
            false,
            Some("fix-12"),
            Ok(false),
        ),
        (regex(".+"), false, false, Some("x"), Ok(true)),
        (regex(".+"), true, true, Some("x"), Ok(false)),
        (regex(".+"), true, true, None, Ok(true)),
        (regex(".+"), true, false, None, Err(())),
        (regex("v[0-9]+"), false, false, None, Err(())),
        (regex("a,b"), false, false, None, Err(())),
        (regex("a?"), false, false, None, Err(())),
        (regex("a"), true, true, None, Err(())),
        (Some(PresentMatch(false)), true, false, Some("x"), Ok(true)),
        (Some(PresentMatch(true)), true, false, Some("x"), Ok(false)),
        (None, true, false, None, Ok(true)),
        (None, false, false, None, Ok(false)),
    ] {
        let case = format!("{specifier:?} {invert} {as_empty} {value:?}");
        let mut route = to("r", PathSpecifier::Prefix("/".into()));
        route.r#match.as_mut().unwrap().headers.push(HeaderMatcher {
            name: "x".into(),
            header_match_specifier: specifier,
            invert_match: invert,
            treat_missing_header_as_empty: as_empty,
        });
        let hosts = vec![host(&["*"], vec![route])];
        let is_rejected = read(hosts.clone()).unwrap().1.has_errors();
        assert_eq!(is_rejected, wanted.is_err(), "{case}");
        let Ok(wanted) = wanted else { continue };
        let mut request = Request::get("a", "/");
        if let Some(value) = value {
            request = request.with("x", value);
        }
        assert_eq!(taken(&snapshot(hosts), &request) == "*/r", wanted, "{case}");
    }
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
        read.routes[&RouteId::from(id)]
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
