use super::RouteTable;
use crate::RequestHead;
use crate::compiled::RouteIndex;
use crate::matching::tests::{TestHead, TestRoute};
use crate::matching::{Lookup, RouteMatcher};

fn table(routes: impl IntoIterator<Item = TestRoute>) -> (Vec<(i32, RouteMatcher)>, RouteTable) {
    let routes: Vec<_> = routes
        .into_iter()
        .map(|route| (0, route.matcher()))
        .collect();
    let table = RouteTable::build(&routes);
    (routes, table)
}

#[test]
fn an_empty_table_finds_nothing() {
    let (routes, table) = table([]);
    let head = TestHead::new("GET", "h/a/b");
    assert_eq!(table.find(&routes, &head), Lookup::NotFound);
}

#[test]
fn every_one_of_many_routes_is_found_by_host_and_by_path() {
    let by_host = (0..500).map(|n| TestRoute::host(&format!("host-{n}.example.com")));
    let by_path = (0..500).map(|n| TestRoute::path(&format!("/area-{}/item-{n}/{{id}}", n % 7)));
    let (routes, table) = table(by_host.chain(by_path));
    for n in 0..500_u32 {
        let head = TestHead::new("GET", &format!("HOST-{n}.example.com/x"));
        assert_eq!(table.find(&routes, &head), Lookup::Matched(RouteIndex(n)));
        let head = TestHead::new("GET", &format!("h/Area-{}/Item-{n}/x", n % 7));
        assert_eq!(
            table.find(&routes, &head),
            Lookup::Matched(RouteIndex(500 + n))
        );
    }
}

#[test]
fn an_optional_end_ends_at_every_place_where_it_may() {
    let (routes, table) = table([TestRoute::path("/a/{b=1}/{c?}/{**d}")]);
    for (url, found) in [
        ("h/a", true),
        ("h/a/b", true),
        ("h/a/b/c/", true),
        ("h/a/b/c/d/e", true),
        ("h/", false),
        ("h/a//c", false),
    ] {
        let expected = if found {
            Lookup::Matched(RouteIndex(0))
        } else {
            Lookup::NotFound
        };
        let head = TestHead::new("GET", url);
        assert_eq!(table.find(&routes, &head), expected, "{url}");
    }
}

/// A head of which it is known that there is nothing to decode in its path.
struct Plain(TestHead);

impl RequestHead for Plain {
    fn method(&self) -> &str {
        self.0.method()
    }

    fn path(&self) -> &str {
        self.0.path()
    }

    fn plain_path(&self) -> Option<&[u8]> {
        Some(self.0.path().as_bytes())
    }

    fn query(&self) -> Option<&str> {
        self.0.query()
    }

    fn authority(&self) -> &str {
        self.0.authority()
    }

    fn is_https(&self) -> bool {
        self.0.is_https()
    }

    fn for_each_header(&self, name: &str, each: &mut dyn FnMut(&[u8]) -> bool) {
        self.0.for_each_header(name, each);
    }
}

#[test]
fn a_path_that_is_known_to_be_plain_leads_to_the_same_route() {
    let templates = [
        "/",
        "/a",
        "/a/{b:int}/c",
        "/a/{b}/{c=1}",
        "/{**rest}",
        "/A1-long-segment/x",
    ];
    let (routes, table) = table(templates.into_iter().map(TestRoute::path));
    for url in [
        "h/",
        "h/a",
        "h/A/",
        "h/a/7/c",
        "h/a/x/c",
        "h/a//c",
        "h//",
        "h/a1-LONG-segment/x",
        "h/a1-long-segment/x/y",
    ] {
        let found = table.find(&routes, &TestHead::new("GET", url));
        let plain = table.find(&routes, &Plain(TestHead::new("GET", url)));
        assert_eq!(plain, found, "{url}");
    }
}

#[test]
fn the_work_for_a_hostile_path_is_bounded_by_the_nodes() {
    // Every segment matches a literal and a parameter, so that a naive search would try 2²⁸ ways.
    let templates = (0..28).map(|end| {
        let segments = (0..28).map(|i| if i == end { "/x" } else { "/{p}" });
        let template: String = segments
            .enumerate()
            .map(|(i, segment)| segment.replace('p', &format!("p{i}")))
            .collect();
        TestRoute::path(&template).methods(&["PUT"])
    });
    let (routes, table) = table(templates);
    let head = TestHead::new("GET", &format!("h{}", "/x".repeat(28)));
    assert!(matches!(
        table.find(&routes, &head),
        Lookup::MethodNotAllowed(_)
    ));
    let head = TestHead::new("GET", &format!("h{}", "/x".repeat(100_000)));
    assert_eq!(table.find(&routes, &head), Lookup::NotFound);
    let host = "a.".repeat(100_000);
    let head = TestHead::new("GET", &format!("{host}/x"));
    assert_eq!(table.find(&routes, &head), Lookup::NotFound);
}

#[test]
fn a_table_says_how_large_it_is() {
    let (_, table) = table([TestRoute::path("/a/{b}"), TestRoute::host("h")]);
    assert_eq!(
        format!("{table:?}"),
        "RouteTable { entries: 2, nodes: 4, depth: 2, .. }"
    );
}
