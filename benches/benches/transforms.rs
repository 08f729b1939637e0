//! The transformation of a client's request into the destination's.

use std::hint::black_box;
use std::net::SocketAddr;

use benches::{cluster, compiled};
use criterion::Criterion;
use http::Request;
use http::request::Parts;
use proxy_model::Snapshot;
use proxy_model::config::{ProxyConfig, RouteConfig, RouteMatch, TransformConfig};
use proxy_runtime::ConnectionInfo;
use proxy_runtime::explain::outgoing_request;

/// The headers of a program.
const FEW: [(&str, &str); 5] = [
    ("host", "orders.example.com"),
    ("user-agent", "orders-client/2.1"),
    ("accept", "application/json"),
    ("accept-encoding", "gzip"),
    (
        "traceparent",
        "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
    ),
];

/// Further headers of a browser.
const MORE: [(&str, &str); 11] = [
    ("accept-language", "en-GB,en;q=0.7"),
    ("cache-control", "no-cache"),
    ("connection", "keep-alive"),
    (
        "cookie",
        "session=9f8b2c7d6e5f4a3b; theme=dark; consent=all",
    ),
    ("pragma", "no-cache"),
    ("referer", "https://www.example.com/basket"),
    ("sec-fetch-dest", "empty"),
    ("sec-fetch-mode", "cors"),
    ("sec-fetch-site", "same-site"),
    ("upgrade-insecure-requests", "1"),
    ("x-requested-with", "XMLHttpRequest"),
];

fn main() {
    let mut criterion = Criterion::default().configure_from_args();
    let mut group = criterion.benchmark_group("transforms");
    let connection = ConnectionInfo::new(SocketAddr::from(([203, 0, 113, 7], 50123)));
    let requests = [("few", request(&FEW, &[])), ("many", request(&FEW, &MORE))];
    for (transforms, snapshot, check) in settings() {
        for (headers, request) in &requests {
            check(&forwarded(&snapshot, request, connection));
            group.bench_function(format!("{transforms}-{headers}"), |bencher| {
                bencher.iter(|| forwarded(&snapshot, black_box(request), connection));
            });
        }
    }
    // The common first step: copying the headers.
    for (headers, request) in &requests {
        group.bench_function(format!("copy-only-{headers}"), |bencher| {
            bencher.iter(|| black_box(request).headers.clone());
        });
    }
    group.finish();
    criterion.final_summary();
}

/// Asserts the expected result.
type Check = fn(&Request<()>);

fn settings() -> [(&'static str, Snapshot, Check); 3] {
    [
        ("default", snapshot(&[]), |request| {
            let header = |name: &str| &request.headers()[name];
            assert_eq!(request.uri(), "/shop/orders/4711?page=2");
            assert_eq!(header("host"), "10.0.0.0:8080");
            assert_eq!(header("x-forwarded-for"), "203.0.113.7");
            assert_eq!(header("x-forwarded-host"), "orders.example.com");
            assert_eq!(header("x-forwarded-proto"), "http");
            assert!(!request.headers().contains_key("connection"));
        }),
        (
            "no-forwarded",
            snapshot(&[&[("X-Forwarded", "Off")]]),
            |request| {
                assert_eq!(request.headers()["host"], "10.0.0.0:8080");
                assert!(!request.headers().contains_key("x-forwarded-for"));
            },
        ),
        (
            "rewriting",
            snapshot(&[
                &[("PathPattern", "/v2/{kind}/{**rest}")],
                &[("QueryValueParameter", "from"), ("Set", "gateway")],
                &[("RequestHeader", "X-Api"), ("Set", "2")],
                &[("RequestHeaderRemove", "X-Requested-With")],
                &[("RequestHeaderOriginalHost", "true")],
            ]),
            |request| {
                assert_eq!(request.uri(), "/v2/orders/4711?page=2&from=gateway");
                assert_eq!(request.headers()["host"], "orders.example.com");
                assert_eq!(request.headers()["x-api"], "2");
                assert!(!request.headers().contains_key("x-requested-with"));
            },
        ),
    ]
}

/// One route with these transforms, to one destination.
fn snapshot(transforms: &[&[(&str, &str)]]) -> Snapshot {
    let map = |entries: &&[(&str, &str)]| -> TransformConfig {
        let owned = entries
            .iter()
            .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
        owned.collect()
    };
    let mut config = ProxyConfig::default();
    config.clusters.insert("c".into(), cluster(1, false));
    config.routes.insert(
        "r".into(),
        RouteConfig {
            cluster_id: Some("c".into()),
            r#match: RouteMatch {
                path: Some("/shop/{kind}/{**rest}".to_owned()),
                ..RouteMatch::default()
            },
            transforms: Some(transforms.iter().map(map).collect()),
            ..RouteConfig::default()
        },
    );
    compiled(config)
}

fn request(few: &[(&str, &str)], more: &[(&str, &str)]) -> Parts {
    let mut request = Request::get("/shop/orders/4711?page=2");
    for (name, value) in few.iter().chain(more) {
        request = request.header(*name, *value);
    }
    let request = request.body(()).expect("it is valid");
    request.into_parts().0
}

fn forwarded(snapshot: &Snapshot, request: &Parts, connection: ConnectionInfo) -> Request<()> {
    let route = &snapshot.routes()[0];
    let destination = &snapshot.clusters()[0].destinations()[0];
    outgoing_request(route, destination, request, connection).expect("the changes make a request")
}
