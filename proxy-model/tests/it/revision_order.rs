//! Tests that a revision distinguishes two orders of the same routes if they route a request differently.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use proxy_model::config::{HeaderMatchMode, ProxyConfig, RouteConfig, RouteHeader, RouteMatch};
use proxy_model::matching::Lookup;
use proxy_model::{CompileOptions, RequestHead, Revision, Snapshot};

/// Paths that tie and paths that do not.
const PATHS: [&str; 16] = [
    "/x/{id:int}",
    "/x/{id:min(1)}",
    "/X/{a}",
    "/x/{b?}",
    "/{a}/1",
    "/{a:alpha}/{b}",
    "/{a}.{b}",
    "/{a:file}",
    "/{a:regex(^\\d+[.]1$)}",
    "/{a=1}",
    "/{**rest}",
    "/{*rest:int}",
    "/x/{*rest:alpha}",
    "/x/{**rest:length(1)}",
    "/y/{id:int}",
    "/y",
];

const REQUEST_PATHS: [&str; 10] = [
    "/", "/x", "/x/1", "/x/0", "/x/a", "/y/1", "/y", "/1.1", "/a/1", "/x/1/2",
];

const HOSTS: [&str; 7] = ["a", "b", "*", "*:81", "a:81", "*.a", "*.b.a"];

const REQUEST_HOSTS: [&str; 5] = ["a", "a:81", "b", "c.b.a", "c.b.a:81"];

fn route() -> impl Strategy<Value = RouteConfig> {
    let hosts = prop_oneof![
        2 => Just(None),
        1 => vec(select(HOSTS.to_vec()).prop_map(str::to_owned), 1..3).prop_map(Some),
    ];
    let methods = prop_oneof![
        2 => Just(None),
        1 => select(vec![vec!["GET"], vec!["PUT"], vec!["GET", "PUT"]]).prop_map(Some),
    ];
    let headers = vec(select(vec!["a", "b"]), 0..2);
    let path = prop_oneof![1 => Just(None), 8 => select(PATHS.to_vec()).prop_map(Some)];
    (
        path,
        hosts,
        methods,
        headers,
        prop_oneof![4 => Just(None), 1 => Just(Some(1))],
    )
        .prop_map(|(path, hosts, methods, headers, order)| RouteConfig {
            order,
            r#match: RouteMatch {
                path: path.map(str::to_owned),
                hosts,
                methods: methods.map(|all| all.into_iter().map(str::to_owned).collect()),
                headers: Some(headers.into_iter().map(present).collect()),
                query_parameters: None,
            },
            ..RouteConfig::default()
        })
}

fn present(name: &str) -> RouteHeader {
    RouteHeader {
        name: name.into(),
        mode: HeaderMatchMode::Exists,
        ..RouteHeader::default()
    }
}

/// A request that has every header.
struct Head {
    method: &'static str,
    host: &'static str,
    path: &'static str,
}

impl RequestHead for Head {
    fn method(&self) -> &str {
        self.method
    }

    fn path(&self) -> &str {
        self.path
    }

    fn query(&self) -> Option<&str> {
        None
    }

    fn authority(&self) -> &str {
        self.host
    }

    fn is_https(&self) -> bool {
        false
    }

    fn for_each_header(&self, _: &str, each: &mut dyn FnMut(&[u8]) -> bool) {
        each(b"1");
    }
}

/// The result of each request: the id of its route, or the rejection.
fn routing(snapshot: &Snapshot) -> Vec<String> {
    let mut routed = Vec::new();
    for path in REQUEST_PATHS {
        for host in REQUEST_HOSTS {
            for method in ["GET", "PUT", "POST"] {
                routed.push(match snapshot.find(&Head { method, host, path }) {
                    Lookup::Matched(index) => snapshot.route_at(index).id().to_string(),
                    rejected => format!("{rejected:?}"),
                });
            }
        }
    }
    routed
}

fn compile(routes: &[(usize, RouteConfig)]) -> Snapshot {
    let routes = routes
        .iter()
        .map(|(id, route)| (id.to_string().into(), route.clone()));
    let config = ProxyConfig {
        routes: routes.collect(),
        ..ProxyConfig::default()
    };
    Snapshot::compile_isolated(config, &CompileOptions::default()).0
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn orders_that_route_differently_have_different_revisions(
        (one, other) in vec(route(), 2..6)
            .prop_map(|routes| routes.into_iter().enumerate().collect::<Vec<_>>())
            .prop_flat_map(|routes| (Just(routes.clone()), Just(routes).prop_shuffle())),
    ) {
        let (one, other) = (compile(&one), compile(&other));
        prop_assert_eq!(one.revision(), Revision::of(one.config()));
        if routing(&one) != routing(&other) {
            prop_assert_ne!(one.revision(), other.revision());
        }
    }
}
