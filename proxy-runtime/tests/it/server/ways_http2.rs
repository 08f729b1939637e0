//! HTTP/2 streams forwarded as HTTP/1.1, those of the tower service and those through layers have the same result.

use std::net::SocketAddr;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Request};
use serde_json::{Value, json};

use crate::server::destinations::Scripted;
use crate::server::own_transforms::{FAILING, summed_routes, waiting};
use crate::server::streams::Client;
use crate::server::ways::{
    ANSWERS, CHANGED, Message, OK, Seen, TRAILED, changed_routes, dated, each_way, trailed_routes,
};

/// A request, with or without a declared length.
struct Given<'a> {
    method: &'static str,
    target: &'a str,
    fields: &'static [(&'static str, &'static str)],
    body: Option<&'static str>,
    trailers: &'static [(&'static str, &'static str)],
}

const GET: Given<'static> = Given {
    method: "GET",
    target: "http://shop.example/a/b?c=d&e",
    fields: &[],
    body: None,
    trailers: &[],
};

fn map(fields: &[(&'static str, &'static str)]) -> HeaderMap {
    let mut map = HeaderMap::new();
    for (name, value) in fields {
        map.append(
            HeaderName::from_static(name),
            HeaderValue::from_static(value),
        );
    }
    map
}

fn lines(fields: &HeaderMap) -> impl Iterator<Item = (&str, &str)> {
    let fields = fields.iter();
    fields.map(|(name, value)| {
        (
            name.as_str(),
            std::str::from_utf8(value.as_bytes()).unwrap(),
        )
    })
}

/// Sends the request twice over one connection. Returns the result.
async fn exchange(address: SocketAddr, origin: &Scripted, given: &Given<'_>) -> Seen {
    let mut client = Client::connect(address).await;
    let mut response = None;
    for _ in 0..2 {
        let mut request = Request::builder()
            .method(given.method)
            .uri(given.target)
            .body(())
            .unwrap();
        *request.headers_mut() = map(given.fields);
        let body = given.body.map(|body| Bytes::from_static(body.as_bytes()));
        let trailers = (!given.trailers.is_empty()).then(|| map(given.trailers));
        response = Some(client.send(request, body, trailers).await.unwrap());
    }
    let response = response.unwrap();
    let fields = lines(&response.fields).chain(lines(&response.trailers));
    Seen {
        request: origin.received_twice(),
        response: Message::new(response.status.to_string(), fields, &response.body),
    }
}

/// Asserts that all ways have the same result, and returns it.
async fn compare(
    name: &str,
    route: &Value,
    base: &str,
    given: &Given<'_>,
    answer: &'static str,
) -> Seen {
    let seen = compare_any(name, route, base, given, answer).await;
    assert_ne!(seen.request, Message::default(), "{name} is forwarded");
    seen
}

/// The same of a request that the proxy may answer itself.
async fn compare_any(
    name: &str,
    route: &Value,
    base: &str,
    given: &Given<'_>,
    answer: &'static str,
) -> Seen {
    let seen = each_way(name, answer, async |way, origin| {
        let server = way.server(origin, route, base);
        exchange(server.local_addrs()[0], origin, given).await
    });
    seen.await
}

#[tokio::test]
async fn requests_are_the_same_both_ways() {
    for (name, given) in [
        ("GET", GET),
        (
            "POST with a length",
            Given {
                method: "POST",
                fields: &[("content-length", "3")],
                body: Some("abc"),
                ..GET
            },
        ),
        (
            "POST without a length",
            Given {
                method: "POST",
                body: Some("abc"),
                ..GET
            },
        ),
        (
            "no content",
            Given {
                method: "POST",
                fields: &[("content-length", "0")],
                ..GET
            },
        ),
        (
            "an empty body",
            Given {
                method: "PUT",
                body: Some(""),
                ..GET
            },
        ),
        (
            "trailers",
            Given {
                method: "POST",
                fields: &[("te", "trailers"), ("trailer", "x-sum")],
                body: Some("abc"),
                trailers: &[
                    ("x-sum", "1"),
                    ("host", "evil"),
                    ("x-forwarded-for", "203.0.113.9"),
                    ("authorization", "Bearer t"),
                ],
                ..GET
            },
        ),
        (
            "trailers of a body with a length",
            Given {
                method: "POST",
                fields: &[("content-length", "3")],
                body: Some("abc"),
                trailers: &[("x-sum", "1")],
                ..GET
            },
        ),
        (
            "odd method",
            Given {
                method: "PURGE",
                ..GET
            },
        ),
        (
            "HEAD",
            Given {
                method: "HEAD",
                ..GET
            },
        ),
        (
            "no path",
            Given {
                target: "http://shop.example",
                ..GET
            },
        ),
        (
            "dots",
            Given {
                target: "http://h/a/../b?x=/../y",
                ..GET
            },
        ),
        (
            "encoded",
            Given {
                target: "http://h/a%20b/%7e?x=%2f",
                ..GET
            },
        ),
        (
            "crumbs",
            Given {
                fields: &[("cookie", "a=1"), ("x", "1"), ("cookie", "b=2"), ("x", "2")],
                ..GET
            },
        ),
        (
            "of one connection",
            Given {
                fields: &[
                    ("te", "trailers"),
                    ("proxy-authorization", "secret"),
                    ("upgrade-insecure-requests", "1"),
                    ("alt-svc", "h3"),
                    ("x-stays", "1"),
                ],
                ..GET
            },
        ),
        (
            "forwarded",
            Given {
                fields: &[
                    ("x-forwarded-for", "1.2.3.4"),
                    ("x-forwarded-proto", "https"),
                    ("x-forwarded-host", "evil"),
                    ("x-forwarded-prefix", "/x"),
                    ("forwarded", "for=1.2.3.4"),
                ],
                ..GET
            },
        ),
        (
            "expect",
            Given {
                method: "POST",
                fields: &[("expect", "100-continue"), ("content-length", "0")],
                ..GET
            },
        ),
    ] {
        let plain = if name == "HEAD" {
            "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n"
        } else {
            OK
        };
        compare(name, &json!({}), "", &given, plain).await;
    }
}

/// A request of which filters change something.
const FILTERED: Given<'static> = Given {
    target: "http://shop.example/api/items/7?q=1",
    fields: &[
        ("x-old", "1"),
        ("x-keep", "2"),
        ("cookie", "a=b"),
        ("cookie", "c=d"),
        ("x-forwarded-for", "1.2.3.4"),
    ],
    ..GET
};

#[tokio::test]
async fn filters_see_and_change_the_same_both_ways() {
    for filters in [
        json!(["idle"]),
        json!(["a", "b"]),
        json!(["elsewhere"]),
        json!(["a", "elsewhere", "b"]),
        json!(["dated"]),
    ] {
        let route = json!({ "Filters": filters });
        for base in ["", "/base/"] {
            let name = format!("{filters} to {base}");
            compare(&name, &route, base, &FILTERED, OK).await;
        }
        let post = Given {
            method: "POST",
            body: Some("abc"),
            trailers: &[("x-sum", "1")],
            ..GET
        };
        compare(&filters.to_string(), &route, "", &post, OK).await;
    }
    let route = json!({ "Filters": ["a"] });
    let seen = compare("marked", &route, "", &FILTERED, OK).await;
    let has = |message: &Message, field: &str| message.fields.iter().any(|there| there == field);
    assert!(has(&seen.request, "x-mark: a"), "{seen:?}");
    assert!(has(&seen.response, "x-a: a"), "{seen:?}");
}

#[tokio::test]
async fn transforms_come_after_filters_both_ways() {
    for transforms in [
        json!([{ "PathPrefix": "/prefix" }]),
        json!([{ "PathPattern": "/x/{kind}/{**rest}" }]),
        json!([{ "QueryValueParameter": "new", "Append": "a b" }]),
        json!([{ "RequestHeader": "X-Mark", "Set": "new" }, { "RequestHeader": "X-Keep", "Append": "more" }]),
        json!([{ "RequestHeaderRemove": "X-Keep" }]),
        json!([{ "RequestHeader": "Host", "Set": "named.example" }]),
        json!([{ "RequestHeaderRemove": "Host" }]),
        json!([{ "RequestHeaderOriginalHost": "true" }]),
        json!([{ "RequestHeadersCopy": "false" }]),
        json!([{ "RequestHeadersAllowed": "X-Keep;Accept" }]),
        json!([{ "X-Forwarded": "Append" }]),
        json!([{ "ResponseHeader": "X-A", "Append": "3" }]),
        json!([{ "ResponseHeader": "X-Seen", "Set": "no" }]),
        json!([{ "ResponseHeadersCopy": "false" }]),
        json!([{ "ResponseHeadersAllowed": "X-A" }]),
    ] {
        let route = json!({
            "Match": { "Path": "/api/{kind}/{**rest}" },
            "Filters": ["a", "elsewhere"],
            "Transforms": transforms,
        });
        compare(&transforms.to_string(), &route, "", &FILTERED, OK).await;
    }
}

#[tokio::test]
async fn transforms_that_wait_are_the_same_both_ways() {
    let post = Given {
        method: "POST",
        body: Some("abc"),
        ..GET
    };
    for (transforms, told) in waiting() {
        let route = json!({ "Transforms": transforms });
        for given in [&GET, &post] {
            let seen = compare(&transforms.to_string(), &route, "", given, OK).await;
            let seen = format!("{seen:?}").to_lowercase();
            for told in told {
                assert!(seen.contains(&told.to_lowercase()), "{told}: {seen}");
            }
        }
    }
    for (key, word, status) in FAILING {
        let route = json!({ "Transforms": [{ "Sign": "outer" }, { key: word }] });
        for given in [&GET, &post] {
            let seen = compare_any(word, &route, "", given, OK).await;
            assert_eq!(seen.response.start, status, "{key} {word}");
        }
    }
}

#[tokio::test]
async fn trailers_of_filters_are_the_same_both_ways() {
    let routes = summed_routes();
    for route in &routes {
        for answer in TRAILED {
            compare(&format!("{route} {answer}"), route, "", &GET, answer).await;
        }
    }
    for (answer, told) in [
        (TRAILED[0], &["x-sum: 8", "x-by: a"][..]),
        // In HTTP/2 there is a place for them behind any body.
        (TRAILED[3], &["x-sum: 1", "x-by: a"]),
        (TRAILED[4], &["x-sum: 1", "x-by: a"]),
        (TRAILED[5], &[]),
    ] {
        let seen = compare(answer, &routes[0], "", &GET, answer).await;
        let fields = seen.response.fields.iter();
        let fields: Vec<_> = fields.filter(|field| field.starts_with("x-by")).collect();
        assert_eq!(fields.len(), told.len().min(1), "{answer}: {seen:?}");
        for told in told {
            let has = |field: &String| field == told;
            assert!(seen.response.fields.iter().any(has), "{answer}: {seen:?}");
        }
    }
}

#[tokio::test]
async fn what_filters_answer_is_the_same_both_ways() {
    for (filters, target, status) in [
        (json!(["answer"]), "http://h/", 401),
        (json!(["answer"]), "http://h/204", 204),
        (json!(["answer"]), "http://h/304", 304),
        (json!(["answer"]), "http://h/empty", 200),
        (json!(["a", "answer", "b"]), "http://h/", 401),
        (json!(["a", "panic"]), "http://h/panic", 500),
        (json!(["a", "panic"]), "http://h/", 500),
        (json!(["panic", "a"]), "http://h/", 500),
    ] {
        for method in ["GET", "HEAD", "POST"] {
            let given = Given {
                method,
                target,
                body: (method == "POST").then_some("abc"),
                ..GET
            };
            let route = json!({
                "Filters": filters,
                "Transforms": [{ "ResponseHeader": "X-Of-Route", "Set": "yes", "When": "Always" }],
            });
            let name = format!("{method} {target} {filters}");
            let answer = match method {
                "HEAD" => "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n",
                _ => OK,
            };
            let seen = compare_any(&name, &route, "", &given, answer).await;
            assert!(
                seen.response.start.starts_with(&status.to_string()),
                "{name}: {seen:?}"
            );
        }
    }
}

#[tokio::test]
async fn responses_are_the_same_both_ways() {
    // Messages that HTTP/1.1 may frame in several ways.
    let framed = [
        (
            "trailers",
            "HTTP/1.1 200 OK\r\nTrailer: x-sum\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nX-Sum: 7\r\nExpires: 0\r\n\r\n",
        ),
        (
            "no content in chunks",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        ),
    ];
    for (name, answer) in ANSWERS.into_iter().chain(framed) {
        compare(name, &json!({}), "", &GET, answer).await;
    }
}

#[tokio::test]
async fn answers_of_the_proxy_have_one_date() {
    let (route, answer) = dated();
    let seen = compare("dated", &route, "", &GET, answer).await;
    let fields = seen.response.fields.iter();
    assert_eq!(fields.filter(|field| *field == "date").count(), 1);
}

#[tokio::test]
async fn changes_are_the_same_both_ways() {
    let target = format!("http://shop.example{CHANGED}");
    let given = Given {
        target: &target,
        fields: &[("x-old", "1"), ("x-keep", "2"), ("cookie", "a=b")],
        ..GET
    };
    for (route, base) in changed_routes() {
        compare(&route.to_string(), &route, base, &given, OK).await;
    }
}

#[tokio::test]
async fn trailers_are_the_same_both_ways() {
    for route in trailed_routes() {
        for answer in TRAILED {
            let name = format!("{route} {answer}");
            compare(&name, &route, "", &GET, answer).await;
            let head = Given {
                method: "HEAD",
                ..GET
            };
            let length = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n";
            compare(&name, &route, "", &head, length).await;
        }
    }
    let route = &trailed_routes()[0];
    for answer in &TRAILED[..5] {
        let seen = compare("added", route, "", &GET, answer).await;
        assert!(
            seen.response.fields.contains(&"x-t: 1".to_owned()) || answer.contains("404"),
            "{answer}: {seen:?}"
        );
    }
}
