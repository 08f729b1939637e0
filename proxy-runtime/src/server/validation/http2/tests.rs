use http::{Request, Version};

use super::*;

fn request(method: &str, target: &str, headers: &[(&str, &str)]) -> Parts {
    let mut request = Request::builder()
        .method(method)
        .uri(target)
        .version(Version::HTTP_2);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    request.body(()).unwrap().into_parts().0
}

fn get(target: &str, headers: &[(&str, &str)]) -> Parts {
    request("GET", target, headers)
}

fn status(mut request: Parts) -> u16 {
    match validate_http2(&mut request, &Limits::default(), ListenerRules::default()) {
        Ok(_) => 200,
        Err(rejection) => rejection.status.as_u16(),
    }
}

#[test]
fn targets_in_other_forms_are_rejected() {
    let host = &[("host", "t.example")];
    for (id, method, target, expected) in [
        ("u-authority", "GET", "t.example:80", 400),
        ("star-get", "GET", "*", 400),
        ("opt-star", "OPTIONS", "*", 200),
        ("abs-userinfo", "GET", "http://u@t.example/", 400),
        ("abs-scheme", "GET", "ftp://t.example/", 400),
        ("connect", "CONNECT", "t.example:443", 405),
        ("trace", "TRACE", "/a", 405),
        ("m-lower", "get", "/a", 200),
        ("path-dot-param", "GET", "/pub/..;/adm", 400),
        ("path-pct-nul", "GET", "/a%00", 400),
        ("path-pct-bad", "GET", "/a%zz", 400),
        // Rejected in a request line of HTTP/1.1 too, which the path may become.
        ("u-backslash", "GET", "/pub/..\\adm", 400),
        ("u-brace", "GET", "/a{b}", 400),
        ("u-quote", "GET", "/a\"b", 400),
        ("u-utf8", "GET", "/\u{e9}", 400),
        ("path-bar", "GET", "/a|b^c[d]?e[f]={g}", 200),
    ] {
        let parts = request(method, target, host);
        assert_eq!(status(parts), expected, "{id}");
    }
}

#[test]
fn dot_segments_go_and_the_query_stays() {
    let mut parts = get("/pub/%2e%2e/adm?x=/../y", &[("host", "t.example")]);
    validate_http2(&mut parts, &Limits::default(), ListenerRules::default()).unwrap();
    assert_eq!(parts.uri, "/adm?x=/../y");

    let mut parts = get("https://t.example/pub/../adm", &[]);
    validate_http2(&mut parts, &Limits::default(), ListenerRules::default()).unwrap();
    assert_eq!(parts.uri, "https://t.example/adm");
}

#[test]
fn expectations_other_than_100_continue_fail() {
    let with = |value| status(get("/a", &[("host", "t.example"), ("expect", value)]));
    assert_eq!(with("100-Continue"), 200);
    assert_eq!(with("foo"), 417, "ex-unknown");
    assert_eq!(with("y 100-continue"), 417, "ex-obf");
}

#[test]
fn white_space_around_values_is_rejected() {
    for (value, expected) in [
        ("1", 200),
        ("", 200),
        ("a \tb", 200),
        ("1 ", 400),
        (" 1", 400),
        ("1\t", 400),
        ("\t1", 400),
        (" ", 400),
    ] {
        let fields = [("host", "t.example"), ("x-internal", value)];
        assert_eq!(status(get("/a", &fields)), expected, "{value:?}");
    }
}

#[test]
fn the_authority_of_http_2_agrees_with_host() {
    for (id, target, headers, expected) in [
        (
            "269-same",
            "http://t.example/a",
            &[("host", "T.example")][..],
            200,
        ),
        (
            "269",
            "http://t.example/a",
            &[("host", "evil.example")],
            400,
        ),
        ("270-userinfo", "http://u@t.example/a", &[], 400),
        ("270-comma", "http://t.example,x/a", &[], 400),
        ("host-only", "/a", &[("host", "t.example")], 200),
        ("host-only-bad", "/a", &[("host", "t.example/x")], 400),
        ("neither", "/a", &[], 400),
        ("host-dup", "/a", &[("host", "a"), ("host", "a")], 400),
    ] {
        assert_eq!(status(get(target, headers)), expected, "{id}");
    }
}

#[test]
fn sizes_are_limited() {
    let host = ("host", "t.example");
    let at_limit = format!("/{}", "a".repeat(8 * 1024 - 4));
    assert_eq!(status(get(&at_limit, &[host])), 200);
    assert_eq!(status(get(&format!("{at_limit}a"), &[host])), 414);

    let mut headers = vec![host];
    headers.resize(100, ("cookie", "a=b"));
    assert_eq!(status(get("/a", &headers)), 200);
    headers.push(("cookie", "a=b"));
    assert_eq!(status(get("/a", &headers)), 431);

    // `GET /a HTTP/1.1`, `host: t.example`, and the empty line.
    let rest = 32 * 1024 - 17 - 17 - 2;
    let large = "x".repeat(rest - "a: \r\n".len());
    assert_eq!(status(get("/a", &[host, ("a", &large)])), 200);
    assert_eq!(status(get("http://t.example/a", &[("a", &large)])), 200);
    let larger = format!("{large}x");
    assert_eq!(status(get("/a", &[host, ("a", &larger)])), 431);

    let method = "M".repeat(65);
    let parts = request(&method, "/a", &[host]);
    assert_eq!(status(parts), 501, "m-long");
}

#[test]
fn two_lengths_are_rejected() {
    for (lengths, expected) in [(&["5"][..], 200), (&["5", "5"], 400), (&["5", "6"], 400)] {
        let mut fields = vec![("host", "t.example")];
        fields.extend(lengths.iter().map(|length| ("content-length", *length)));
        assert_eq!(
            status(request("POST", "/a", &fields)),
            expected,
            "{lengths:?}"
        );
    }
}

#[test]
fn names_that_imitate_ours_are_rejected() {
    let with = |name| status(get("/a", &[("host", "t.example"), (name, "x")]));
    assert_eq!(with("x_forwarded_for"), 400, "xff-under");
    assert_eq!(with("x-forwarded_for"), 400);
    assert_eq!(with("x-forwarded-by_us"), 400);
    assert_eq!(with("transfer_encoding"), 400, "te-under");
    assert_eq!(
        with("x_api_key"),
        200,
        "other names with underscores are the user's"
    );
    assert_eq!(with("x-forwarded-for"), 200);
}

#[test]
fn who_is_not_believed_does_not_tell_where_it_came_from() {
    let fields = [
        ("host", "t"),
        ("x-real-ip", "1"),
        ("x-forwarded-port", "2"),
        ("x-forwarded-client-cert", "3"),
        ("true-client-ip", "4"),
        ("x-forwarded-for", "5"),
        ("x-real-ip", "6"),
        ("x-team", "7"),
    ];
    for trusts_senders in [false, true] {
        let rules = ListenerRules {
            trusts_senders,
            ..ListenerRules::default()
        };
        let mut parts = get("/a", &fields);
        let classes = validate_http2(&mut parts, &Limits::default(), rules).unwrap();
        assert_eq!(classes.contains(FieldClass::XForwarded), trusts_senders);
        let left: Vec<_> = parts
            .headers
            .values()
            .map(|v| v.to_str().unwrap())
            .collect();
        match trusts_senders {
            true => assert_eq!(left.len(), fields.len()),
            // The map reorders entries when one is removed.
            false => assert_eq!(left, ["t", "7", "5"]),
        }
    }
}
