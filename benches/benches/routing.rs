//! The look-up of a request's route, among 10, 1,000 and 100,000.

use std::cell::LazyCell;
use std::hint::black_box;

use benches::{Head, RouteSet, Scale};
use criterion::{BenchmarkId, Criterion};
use proxy_model::RequestHead;
use proxy_model::Snapshot;
use proxy_model::compiled::RouteIndex;
use proxy_model::matching::{Lookup, MethodSet};
use proxy_runtime::http1::{HeadLimits, HeadTable, RawRequest, RequestView, Status, parse_request};

/// Numbers of routes.
const SIZES: [usize; 3] = [10, 1_000, 100_000];

fn main() {
    let mut criterion = Criterion::default().configure_from_args();
    let scale = Scale::of_this_run();
    matches(&mut criterion, scale);
    raw_heads(&mut criterion, scale);
    yardstick(&mut criterion, scale);
    rejections(&mut criterion, scale);
    hostile(&mut criterion, scale);
    criterion.final_summary();
}

/// Measures one look-up, with each request in turn. The routes are not built if a filter excludes
/// the benchmark.
fn measure(
    criterion: &mut Criterion,
    group: &str,
    size: impl std::fmt::Display,
    set: impl FnOnce() -> RouteSet,
) {
    let set = LazyCell::new(set);
    let mut group = criterion.benchmark_group(group);
    group.bench_function(BenchmarkId::from_parameter(size), |bencher| {
        let snapshot = set.snapshot();
        let mut requests = set.requests().iter().cycle();
        bencher.iter(|| snapshot.find(black_box(requests.next().expect("it goes on for ever"))));
    });
    group.finish();
}

/// Requests that match a route.
fn matches(criterion: &mut Criterion, scale: Scale) {
    for size in scale.limits(&SIZES) {
        measure(criterion, "routing/host", size, || RouteSet::by_host(size));
        measure(criterion, "routing/wildcard", size, || {
            RouteSet::by_wildcard(size)
        });
        measure(criterion, "routing/path", size, || RouteSet::by_path(size));
    }
}

/// Raw requests: from a parsed head to the route.
fn raw_heads(criterion: &mut Criterion, scale: Scale) {
    let mut group = criterion.benchmark_group("routing/raw-head");
    for size in scale.limits(&SIZES) {
        let built = LazyCell::new(|| {
            let set = RouteSet::by_host(size);
            let heads: Vec<_> = set.requests().iter().map(RawHead::new).collect();
            for (head, answer) in heads.iter().zip(set.answers()) {
                assert_eq!(&head.route(set.snapshot()), answer);
            }
            (set, heads)
        });
        group.bench_function(BenchmarkId::from_parameter(size), |bencher| {
            let (set, heads) = &*built;
            let mut heads = heads.iter().cycle();
            bencher.iter(|| {
                let head = black_box(heads.next().expect("it goes on for ever"));
                head.route(set.snapshot())
            });
        });
    }
    group.finish();
}

/// A head in its read buffer.
struct RawHead {
    buffer: Vec<u8>,
    table: HeadTable,
    request: RawRequest,
}

impl RawHead {
    fn new(head: &Head) -> Self {
        let (method, path, host) = (head.method(), head.path(), head.authority());
        let buffer = format!(
            "{method} {path} HTTP/1.1\r\nHost: {host}\r\nUser-Agent: orders-client/2.1\r\nAccept: application/json\r\n\r\n"
        );
        let buffer = buffer.into_bytes();
        let mut table = HeadTable::new();
        match parse_request(&buffer, &HeadLimits::default(), &mut table) {
            Ok(Status::Complete(request)) => Self {
                buffer,
                table,
                request,
            },
            other => panic!("{other:?}"),
        }
    }

    fn route(&self, snapshot: &Snapshot) -> Lookup {
        let view = RequestView::new(&self.buffer, &self.request, &self.table, false);
        snapshot.find(&view)
    }
}

/// The same paths in `matchit`, the router of axum. It ignores host and method, decodes nothing and
/// is case-sensitive.
fn yardstick(criterion: &mut Criterion, scale: Scale) {
    let mut group = criterion.benchmark_group("routing/path-matchit");
    for size in scale.limits(&SIZES) {
        let built = LazyCell::new(|| {
            let set = RouteSet::by_path(size);
            let mut router = matchit::Router::new();
            for i in 0..size {
                let template = RouteSet::template(i).replace("{**", "{*");
                let index = RouteIndex(u32::try_from(i).expect("it is small"));
                router
                    .insert(template, index)
                    .expect("it is valid there, too");
            }
            for (request, answer) in set.requests().iter().zip(set.answers()) {
                let found = router.at(request.path()).expect("it is there");
                assert_eq!(&Lookup::Matched(*found.value), answer, "{request:?}");
            }
            (set, router)
        });
        group.bench_function(BenchmarkId::from_parameter(size), |bencher| {
            let (set, router) = &*built;
            let mut requests = set.requests().iter().cycle();
            bencher.iter(|| {
                let request = black_box(requests.next().expect("it goes on for ever"));
                router.at(request.path()).map(|found| *found.value)
            });
        });
    }
    group.finish();
}

/// Requests that match no route.
fn rejections(criterion: &mut Criterion, scale: Scale) {
    for size in scale.limits(&SIZES) {
        measure(criterion, "routing/host-404", size, || {
            let mut set = RouteSet::by_host(size);
            let elsewhere =
                |head: Head| Head::get(head.authority().replace("service", "nothing"), head.path());
            set.change(elsewhere, &Lookup::NotFound);
            set
        });
        measure(criterion, "routing/path-404", size, || {
            let mut set = RouteSet::by_path(size);
            let beside =
                |head: Head| Head::get(head.authority(), head.path().replacen("leaf-", "none-", 1));
            set.change(beside, &Lookup::NotFound);
            set
        });
        measure(criterion, "routing/path-405", size, || {
            let mut set = RouteSet::by_path(size);
            let allowed = MethodSet::parse(&["GET"]).expect("it is a method");
            set.change(
                |head| head.with_method("DELETE"),
                &Lookup::MethodNotAllowed(allowed),
            );
            set
        });
    }
}

/// Requests and routes that are designed to be expensive. Their cost is bounded by the
/// configuration and by the length of the request.
fn hostile(criterion: &mut Criterion, scale: Scale) {
    const PATH_BYTES: usize = 8 * 1024;
    let size = scale.limit(100_000);
    for (name, piece) in [
        ("segments", "/a"),
        ("escapes", "/%61"),
        ("slashes", "/"),
        ("one-segment", "a"),
    ] {
        measure(criterion, "routing/path-8KiB", name, || {
            let path = format!("/{}", piece.repeat(PATH_BYTES / piece.len()));
            let mut set = RouteSet::by_path(size);
            set.ask(Head::get("api.example.com", path), &Lookup::NotFound);
            set
        });
    }
    measure(criterion, "routing/host-253B", "labels", || {
        let mut set = RouteSet::by_wildcard(size);
        set.ask(Head::get("a.".repeat(126) + "a", "/"), &Lookup::NotFound);
        set
    });
    for depth in [5, 10] {
        measure(criterion, "routing/crossing", 1 << depth, || {
            RouteSet::crossing(depth)
        });
    }
    for size in [10, 1_000] {
        measure(criterion, "routing/header", size, || {
            RouteSet::by_header(size)
        });
    }
}
