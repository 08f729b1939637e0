//! Group A: precedence and matching.

use super::{TestHead, TestRoute, assert_finds, get};
use crate::config::{HeaderMatchMode, RouteHeader};
use crate::matching::{Mismatch, RouteMatcher, RouteMatcherParts};

#[test]
fn a01_to_a05_path_then_method_then_host_then_header() {
    let routes = [
        TestRoute::path("/route1"),
        TestRoute::path("/{**catchall}").methods(&["GET"]),
        TestRoute::host("localhost"),
        TestRoute::path("/{**catchall}").header("header1", "value1"),
    ];
    assert_finds(
        "A01-A05",
        &routes,
        &[
            (get("localhost/route1").with("header1", "value1"), "0"),
            (get("localhost/").with("header1", "value1"), "1"),
            (
                TestHead::new("POST", "localhost/").with("header1", "value1"),
                "2",
            ),
            (
                TestHead::new("POST", "example/").with("header1", "value1"),
                "3",
            ),
            // The catch-all with a header takes all methods, so this is not a question of the method.
            (TestHead::new("POST", "example/"), "404"),
        ],
    );
}

#[test]
fn a06_a07_catch_all_below_a_path() {
    let routes = [TestRoute::path("/api/{**catchall}")];
    assert_finds(
        "A06",
        &routes,
        &[(get("h/api/extra"), "0"), (get("h/api"), "0")],
    );
    assert_finds(
        "A07",
        &routes,
        &[(get("h/"), "404"), (get("h/apis"), "404")],
    );
}

#[test]
fn a08_to_a11_wildcards_for_hosts() {
    let routes = [TestRoute::host("*.example.com")];
    assert_finds(
        "A08-A11",
        &routes,
        &[
            (get("foo.example.com/"), "0"),
            (get("FOO.Example.COM/"), "0"),
            (get("example.com/"), "404"),
            (get("a.b.example.com/"), "0"),
            (get(".foo.example.com/"), "404"),
            (get("a..example.com/"), "404"),
            (get(".example.com/"), "404"),
            (get("fooexample.com/"), "404"),
        ],
    );
}

#[test]
fn a12_to_a17_ports_and_the_order_of_hosts() {
    let routes = [TestRoute::host("example.com:443")];
    assert_finds(
        "A15",
        &routes,
        &[
            (get("example.com/").over_tls(), "0"),
            (get("example.com/"), "404"),
            (get("example.com:443/"), "0"),
            (get("example.com:8443/").over_tls(), "404"),
        ],
    );
    // From the least specific to the most specific: the order of the configuration must not matter.
    let routes = [
        TestRoute::path("/{**rest}"),
        TestRoute::host("*"),
        TestRoute::host("*:8080"),
        TestRoute::host("*.com"),
        TestRoute::host("*.example.com"),
        TestRoute::host("*.com:8080"),
        TestRoute::host("*.example.com:8080"),
        TestRoute::host("a.example.com"),
        TestRoute::host("a.example.com:8080"),
    ];
    for last in (1..=routes.len()).rev() {
        let expected = (last - 1).to_string();
        assert_finds(
            "order of hosts",
            &routes[..last],
            &[(get("a.example.com:8080/"), &expected)],
        );
    }
    assert_finds(
        "order of hosts",
        &routes,
        &[
            (get("a.example.com/"), "7"),
            (get("b.example.com:8080/"), "6"),
            (get("b.example.com/"), "4"),
            (get("b.org/"), "1"),
            (get("b.org:8080/"), "2"),
            (TestHead::new("GET", "/"), "1"),
        ],
    );
}

#[test]
fn ipv6_hosts() {
    let routes = [TestRoute::host("[::1]:8080"), TestRoute::host("[::2]")];
    assert_finds(
        "IPv6",
        &routes,
        &[
            (get("[::1]:8080/"), "0"),
            (get("[0:0:0:0:0:0:0:1]:8080/"), "0"),
            (get("[::1]/"), "404"),
            (get("[::2]/"), "1"),
            (get("[::2]:99/"), "1"),
            (get("[::3]/"), "404"),
        ],
    );
}

#[test]
fn a18_to_a24_headers() {
    let routes = [TestRoute::path("/{**r}").header("header1", "value1")];
    assert_finds(
        "A18, A19",
        &routes,
        &[
            (get("h/").with("header1", "value1"), "0"),
            (get("h/"), "404"),
            (get("h/").with("header2", "value1"), "404"),
            (get("h/").with("header1", "v"), "404"),
            (get("h/").with("header1", ""), "404"),
        ],
    );
    let routes = [
        TestRoute::path("/{**r}").header("h1", "v1"),
        TestRoute::path("/{**r}").header("h2", "v2"),
        TestRoute::path("/{**r}")
            .header("h1", "v1")
            .header("h2", "v2"),
    ];
    assert_finds(
        "A20-A24",
        &routes,
        &[
            (get("h/").with("h1", "v1"), "0"),
            (get("h/").with("h1", "v1").with("h2", "wrong"), "0"),
            (get("h/").with("h2", "v2"), "1"),
            (get("h/").with("h1", "v1").with("h2", "v2"), "2"),
            (get("h/"), "404"),
            (get("h/").with("h1", "wrong").with("h2", "wrong"), "404"),
        ],
    );
}

/// B44: neither the mode nor the case flag of a condition makes a route more specific.
#[test]
fn b44_conditions_of_headers_have_one_rank() {
    let with = |header: RouteHeader| TestRoute::path("/{**r}").header_of(&header);
    let exact = RouteHeader {
        name: "h".into(),
        values: Some(vec!["v".into()]),
        ..RouteHeader::default()
    };
    let strict = RouteHeader {
        is_case_sensitive: true,
        ..exact.clone()
    };
    let contains = RouteHeader {
        mode: HeaderMatchMode::Contains,
        ..exact.clone()
    };
    let exists = RouteHeader {
        mode: HeaderMatchMode::Exists,
        values: None,
        ..exact.clone()
    };
    let kinds = [exact, strict, contains, exists];
    for first in &kinds {
        for second in &kinds {
            // The first of the configuration serves, since neither precedes the other.
            let routes = [with(first.clone()), with(second.clone())];
            assert_finds("B44", &routes, &[(get("h/").with("h", "v"), "0")]);
        }
    }
}

#[test]
fn a25_to_a27_precedence_of_templates() {
    let routes = [TestRoute::path("/a/{x}"), TestRoute::path("/a/b")];
    assert_finds("A25", &routes, &[(get("h/a/b"), "1"), (get("h/a/c"), "0")]);
    let routes = [TestRoute::path("/a/{x}"), TestRoute::path("/a/{x:int}")];
    assert_finds("A26", &routes, &[(get("h/a/7"), "1"), (get("h/a/b"), "0")]);
    let routes = [TestRoute::path("/a/{**r}"), TestRoute::path("/a/{x}")];
    assert_finds(
        "A27",
        &routes,
        &[
            (get("h/a/z"), "1"),
            (get("h/a/z/y"), "0"),
            (get("h/a"), "0"),
        ],
    );
}

#[test]
fn order_comes_before_everything() {
    let routes = [
        TestRoute::path("/a/b").order(1),
        TestRoute::path("/{**r}"),
        TestRoute::path("/{**r}").order(-1).header("h", "v"),
    ];
    assert_finds(
        "A28",
        &routes,
        &[(get("h/a/b"), "1"), (get("h/a/b").with("h", "v"), "2")],
    );
}

#[test]
fn a29_a30_a35_a37_paths() {
    assert_finds(
        "A29",
        &[TestRoute::path("/Foo")],
        &[
            (get("h/foo"), "0"),
            (get("h/FOO/"), "0"),
            (get("h/foo/x"), "404"),
        ],
    );
    assert_finds("A30", &[TestRoute::path("/{**r}")], &[(get("h/"), "0")]);
    assert_finds(
        "A35",
        &[TestRoute::host("h")],
        &[
            (get("h/"), "0"),
            (get("h/any/thing"), "0"),
            (get("i/"), "404"),
        ],
    );
    assert_finds(
        "A37",
        &[TestRoute::path("/a/{p?}")],
        &[
            (get("h/a"), "0"),
            (get("h/a/"), "0"),
            (get("h/a/1"), "0"),
            (get("h/a/1/2"), "404"),
            (get("h/a//"), "404"),
        ],
    );
}

#[test]
fn a34_of_equal_routes_the_first_takes_the_request() {
    let routes = [
        TestRoute::path("/a/{x}").and_host("h").methods(&["GET"]),
        TestRoute::path("/a/{y}").and_host("h").methods(&["GET"]),
    ];
    assert_finds("A34", &routes, &[(get("h/a/b"), "0")]);
    assert!(routes[0].matcher().same_criteria(&routes[1].matcher()));
}

#[test]
fn a_route_with_a_host_loses_to_a_better_path() {
    let routes = [
        TestRoute::host("h"),
        TestRoute::path("/a"),
        TestRoute::host("*.com").and_path("/b"),
        TestRoute::host("x.com"),
    ];
    assert_finds(
        "path before host",
        &routes,
        &[
            (get("h/a"), "1"),
            (get("h/b"), "0"),
            (get("x.com/b"), "2"),
            (get("x.com/c"), "3"),
        ],
    );
}

#[test]
fn what_does_not_match_falls_back_to_less_specific_routes() {
    let routes = [
        TestRoute::path("/a/b/{**r}"),
        TestRoute::path("/a/{x:int}/c"),
        TestRoute::path("/{x}/b/d").query("q", "1"),
        TestRoute::host("x.com").and_path("/a/b/d").header("h", "v"),
        TestRoute::host("*.com").and_path("/a/b/d"),
    ];
    assert_finds(
        "fallback",
        &routes,
        &[
            (get("h/a/b/d"), "0"),
            (get("h/a/7/c"), "1"),
            (get("h/a/b/c"), "0"),
            (get("h/z/b/d?q=1"), "2"),
            (get("h/z/b/d"), "404"),
            (get("x.com/a/b/d").with("h", "v"), "3"),
            (get("x.com/a/b/d"), "4"),
        ],
    );
}

#[test]
fn check_names_the_first_mismatch() {
    let matcher = TestRoute::host("h")
        .and_path("/a/{x}")
        .methods(&["GET"])
        .header("H1", "v")
        .query("Q1", "v")
        .matcher();
    let ok = get("h/a/b?q1=v").with("h1", "v");
    assert_eq!(matcher.check(&ok), Ok(()));
    for (head, mismatch, text) in [
        (get("i/"), Mismatch::Host, "host"),
        (TestHead::new("PUT", "h/"), Mismatch::Path, "path"),
        (TestHead::new("PUT", "h/a/b"), Mismatch::Method, "method"),
        (get("h/a/b"), Mismatch::Header("h1".into()), "header h1"),
        (
            get("h/a/b").with("h1", "v"),
            Mismatch::Query("Q1".into()),
            "query parameter Q1",
        ),
    ] {
        assert_eq!(matcher.check(&head), Err(mismatch.clone()));
        assert_eq!(mismatch.to_string(), text);
    }
}

#[test]
fn same_criteria_ignores_names_and_the_order_of_lists() {
    let same = |a: TestRoute, b: TestRoute| a.matcher().same_criteria(&b.matcher());
    let path = TestRoute::path;
    assert!(same(path("/A/{x}"), path("a/{y}/")));
    assert!(same(path("/{x?}"), path("/{x=7}")));
    assert!(same(path("/{*x}"), TestRoute::default()));
    assert!(!same(path("/{x}"), path("/{x?}")));
    assert!(!same(path("/{x:int}"), path("/{x:long}")));
    assert!(!same(path("/{x}"), path("/{{}}")));
    assert!(!same(path("/{x}-{y}"), path("/{x}")));
    assert!(same(
        TestRoute::host("a.com").and_host("[::1]"),
        TestRoute::host("[0::1]").and_host("A.com"),
    ));
    assert!(!same(TestRoute::host("a.com"), TestRoute::host("*.a.com")));
    assert!(!same(TestRoute::host("a.com"), TestRoute::host("a.com:80")));
    assert!(same(
        path("/a").methods(&["GET", "PUT"]).header("H", "v"),
        path("/a").methods(&["put", "get"]).header("h", "V"),
    ));
    assert!(!same(path("/a").methods(&["GET"]), path("/a")));
    assert!(!same(
        path("/a").query("q", "1"),
        path("/a").query("q", "2")
    ));
}

#[test]
fn a_matcher_of_default_parts_takes_everything() {
    let matcher = RouteMatcher::new(RouteMatcherParts::default());
    for head in [
        get("h/a/b?c"),
        TestHead::new("OPTIONS", "*"),
        TestHead::new("", ""),
    ] {
        assert_eq!(matcher.check(&head), Ok(()));
    }
    assert_eq!(matcher.path().as_str(), "/{**catchall}");
}
