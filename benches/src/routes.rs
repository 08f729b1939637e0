//! Large sets of routes, and requests with their expected results.

use proxy_model::compiled::RouteIndex;
use proxy_model::config::{ProxyConfig, RouteConfig, RouteHeader, RouteMatch};
use proxy_model::matching::Lookup;
use proxy_model::{CompileOptions, Snapshot};

use crate::{Head, Picks, cluster};

/// Number of requests that are looked up in turn: too many for the branch predictor, few enough to
/// stay in the cache whatever the number of routes.
const REQUESTS: usize = 1_024;

/// Routes, and requests with their expected results.
#[derive(Debug)]
pub struct RouteSet {
    snapshot: Snapshot,
    requests: Vec<Head>,
    answers: Vec<Lookup>,
}

/// Compiles `config`.
///
/// # Panics
///
/// Panics if it is invalid.
pub fn compiled(config: ProxyConfig) -> Snapshot {
    match Snapshot::compile(config, &CompileOptions::default()) {
        Ok((snapshot, _)) => snapshot,
        Err(problems) => panic!("{problems}"),
    }
}

impl RouteSet {
    /// One host per route, like a gateway with many services.
    pub fn by_host(routes: usize) -> Self {
        let host = |i: usize| format!("service-{i:06}.example.com");
        Self::of(
            (0..routes).map(|i| RouteMatch {
                hosts: Some(vec![host(i)]),
                ..RouteMatch::default()
            }),
            |i| Head::get(host(i), "/v1/orders/4711"),
        )
    }

    /// One wildcard per route, like a gateway with many tenants.
    pub fn by_wildcard(routes: usize) -> Self {
        let suffix = |i: usize| format!("tenant-{i:06}.example.com");
        Self::of(
            (0..routes).map(|i| RouteMatch {
                hosts: Some(vec![format!("*.{}", suffix(i))]),
                ..RouteMatch::default()
            }),
            |i| Head::get(format!("orders.eu.{}", suffix(i)), "/v1/orders/4711"),
        )
    }

    /// One path per route, all with the same host, like an API gateway. They share prefixes, with
    /// literals beside parameters; routes match `GET` only.
    pub fn by_path(routes: usize) -> Self {
        Self::of(
            (0..routes).map(|i| RouteMatch {
                path: Some(Self::template(i)),
                methods: Some(vec!["GET".to_owned()]),
                ..RouteMatch::default()
            }),
            |i| Head::get("api.example.com", path(i)),
        )
    }

    /// One header value per route, all with the same host and path: no trie can distinguish them,
    /// so routes are tested one by one.
    pub fn by_header(routes: usize) -> Self {
        let tenant = |i: usize| format!("tenant-{i:04}");
        Self::of(
            (0..routes).map(|i| RouteMatch {
                path: Some("/{**rest}".to_owned()),
                headers: Some(vec![RouteHeader {
                    name: "x-tenant".to_owned(),
                    values: Some(vec![tenant(i)]),
                    ..RouteHeader::default()
                }]),
                ..RouteMatch::default()
            }),
            |i| Head::get("api.example.com", "/v1/orders/4711").with_header("x-tenant", tenant(i)),
        )
    }

    /// Every sequence of `depth` segments that are the literal `a` or a parameter, followed by the
    /// literal `end`: 2^`depth` routes. The single request has a path that fits all prefixes and
    /// matches no route.
    pub fn crossing(depth: usize) -> Self {
        let template = |bits: usize| {
            let segments = (0..depth).map(|at| match bits >> at & 1 {
                0 => "/a".to_owned(),
                _ => format!("/{{p{at}}}"),
            });
            segments.chain(["/end".to_owned()]).collect::<String>()
        };
        let all = "/a".repeat(depth);
        let mut set = Self::of_one(
            (0..1 << depth).map(|bits| RouteMatch {
                path: Some(template(bits)),
                ..RouteMatch::default()
            }),
            // The first route has literals only, so it has precedence.
            Head::get("api.example.com", format!("{all}/end")),
        );
        set.ask(
            Head::get("api.example.com", format!("{all}/other")),
            &Lookup::NotFound,
        );
        set
    }

    /// The `i`th template of [`by_path`](Self::by_path).
    pub fn template(i: usize) -> String {
        let (group, leaf) = (i / 100, i % 100);
        match i % 4 {
            0 => format!("/api/v1/group-{group:04}/leaf-{leaf:02}"),
            1 => format!("/api/v1/group-{group:04}/leaf-{leaf:02}/{{id}}"),
            2 => format!("/api/v1/group-{group:04}/{{id}}/leaf-{leaf:02}"),
            _ => format!("/api/v1/group-{group:04}/{{id}}/leaf-{leaf:02}/{{**rest}}"),
        }
    }

    fn of(matches: impl Iterator<Item = RouteMatch>, request: impl Fn(usize) -> Head) -> Self {
        let snapshot = snapshot(matches);
        let picks = Picks::below(snapshot.routes().len()).take(REQUESTS);
        let (requests, answers) = picks.map(|i| (request(i), answer(i))).unzip();
        let set = Self {
            snapshot,
            requests,
            answers,
        };
        set.check();
        set
    }

    /// A set with a single request that matches the first route.
    fn of_one(matches: impl Iterator<Item = RouteMatch>, request: Head) -> Self {
        let set = Self {
            snapshot: snapshot(matches),
            requests: vec![request],
            answers: vec![answer(0)],
        };
        set.check();
        set
    }

    /// The routes.
    pub fn snapshot(&self) -> &Snapshot {
        &self.snapshot
    }

    /// The requests.
    pub fn requests(&self) -> &[Head] {
        &self.requests
    }

    /// The expected result of each request.
    pub fn answers(&self) -> &[Lookup] {
        &self.answers
    }

    /// Replaces all requests by one with this expected result.
    ///
    /// # Panics
    ///
    /// Panics if the result differs.
    #[track_caller]
    pub fn ask(&mut self, request: Head, answer: &Lookup) {
        self.requests = vec![request];
        self.expect(answer);
    }

    /// Changes all requests, with this expected result.
    ///
    /// # Panics
    ///
    /// Panics if a result differs.
    #[track_caller]
    pub fn change(&mut self, change: impl Fn(Head) -> Head, answer: &Lookup) {
        let requests = std::mem::take(&mut self.requests);
        self.requests = requests.into_iter().map(change).collect();
        self.expect(answer);
    }

    #[track_caller]
    fn expect(&mut self, answer: &Lookup) {
        self.answers = vec![answer.clone(); self.requests.len()];
        self.check();
    }

    #[track_caller]
    fn check(&self) {
        for (request, answer) in self.requests.iter().zip(&self.answers) {
            assert_eq!(&self.snapshot.find(request), answer, "{request:?}");
        }
    }
}

fn snapshot(matches: impl Iterator<Item = RouteMatch>) -> Snapshot {
    let mut config = ProxyConfig::default();
    config.clusters.insert("all".into(), cluster(1, false));
    let routes = matches.enumerate().map(|(i, r#match)| {
        let route = RouteConfig {
            cluster_id: Some("all".into()),
            r#match,
            ..RouteConfig::default()
        };
        (format!("route-{i:06}").into(), route)
    });
    config.routes = routes.collect();
    compiled(config)
}

fn answer(route: usize) -> Lookup {
    Lookup::Matched(RouteIndex(
        u32::try_from(route).expect("there are not so many routes"),
    ))
}

/// A path that matches the `i`th template only.
fn path(i: usize) -> String {
    let (group, leaf) = (i / 100, i % 100);
    match i % 4 {
        0 => format!("/api/v1/group-{group:04}/leaf-{leaf:02}"),
        1 => format!("/api/v1/group-{group:04}/leaf-{leaf:02}/4711"),
        2 => format!("/api/v1/group-{group:04}/4711/leaf-{leaf:02}"),
        _ => format!("/api/v1/group-{group:04}/4711/leaf-{leaf:02}/lines/7"),
    }
}
