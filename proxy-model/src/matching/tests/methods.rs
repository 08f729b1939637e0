//! Group A: methods, and which are allowed.

use super::{TestHead, TestRoute, assert_finds, get};

#[test]
fn a31_to_a33_method_not_allowed() {
    let post = |url| TestHead::new("POST", url);
    let routes = [TestRoute::path("/a").methods(&["GET"])];
    assert_finds(
        "A31",
        &routes,
        &[(post("h/a"), "405 GET"), (post("h/b"), "404")],
    );
    let routes = [
        TestRoute::path("/a").methods(&["put", "GET"]),
        TestRoute::path("/{x}").methods(&["DELETE", "GET", "PURGE"]),
    ];
    assert_finds(
        "A32",
        &routes,
        &[(post("h/a"), "405 DELETE, GET, PURGE, PUT")],
    );
    let routes = [
        TestRoute::path("/a").methods(&["GET"]),
        TestRoute::path("/{**r}").header("h", "v"),
    ];
    assert_finds(
        "A33",
        &routes,
        &[(post("h/a"), "404"), (post("h/a").with("h", "v"), "1")],
    );
}

#[test]
fn only_the_method_may_be_wrong_for_405() {
    let post = |url| TestHead::new("POST", url);
    let get = &["GET"];
    assert_finds(
        "host",
        &[TestRoute::host("i").and_path("/a").methods(get)],
        &[(post("h/a"), "404"), (post("i/a"), "405 GET")],
    );
    assert_finds(
        "header",
        &[TestRoute::path("/a").methods(get).header("h", "v")],
        &[
            (post("h/a"), "404"),
            (post("h/a").with("h", "v"), "405 GET"),
        ],
    );
    assert_finds(
        "query",
        &[TestRoute::path("/a").methods(get).query("q", "v")],
        &[(post("h/a"), "404"), (post("h/a?q=v"), "405 GET")],
    );
    assert_finds(
        "constraint",
        &[TestRoute::path("/{x:int}").methods(get)],
        &[(post("h/a"), "404"), (post("h/7"), "405 GET")],
    );
}

#[test]
fn get_does_not_imply_head() {
    let routes = [TestRoute::path("/a").methods(&["GET"])];
    assert_finds(
        "HEAD",
        &routes,
        &[(TestHead::new("HEAD", "h/a"), "405 GET")],
    );
}

#[test]
fn custom_methods_match() {
    let routes = [
        TestRoute::path("/a").methods(&["PURGE", "GET"]),
        TestRoute::path("/b"),
    ];
    assert_finds(
        "custom",
        &routes,
        &[
            (TestHead::new("PURGE", "h/a"), "0"),
            (TestHead::new("purge", "h/a"), "405 GET, PURGE"),
            (TestHead::new("get", "h/a"), "0"),
            (TestHead::new("BREW", "h/b"), "1"),
        ],
    );
}

#[test]
fn a36_preflight() {
    let preflight = |method: &str| {
        TestHead::new("OPTIONS", "h/a")
            .with("origin", "https://example.com")
            .with("access-control-request-method", method)
    };
    let cors = TestRoute::path("/a").methods(&["GET", "PURGE"]).preflight();
    let no_cors = TestRoute::path("/a").methods(&["GET"]);
    assert_finds(
        "A36",
        &[cors],
        &[
            (preflight("GET"), "0"),
            (preflight("PURGE"), "0"),
            (preflight("POST"), "405 GET, PURGE"),
            (preflight(""), "405 GET, PURGE"),
            (TestHead::new("OPTIONS", "h/a"), "405 GET, PURGE"),
            (
                TestHead::new("OPTIONS", "h/a").with("access-control-request-method", "GET"),
                "405 GET, PURGE",
            ),
            (get("h/a"), "0"),
        ],
    );
    assert_finds(
        "A36 without CORS",
        &[no_cors],
        &[(preflight("GET"), "405 GET")],
    );
}
