//! Filters see and change the same on both forwarding paths.

use http::{HeaderValue, StatusCode};
use proxy_runtime::ProxyBuilder;
use proxy_runtime::filter::{Filter, FilterContext, Flow, Reply, RequestEdit, ResponseEdit};
use serde_json::json;

use crate::server::ways::{OK, compare, compare_forwarded};

/// Filters that [`registered`] knows.
struct Idle;
struct Mark(&'static str);
struct Elsewhere;
struct Answer;
struct Panic;
struct Dated;

pub(crate) fn registered(builder: ProxyBuilder) -> ProxyBuilder {
    builder
        .filter("idle", Idle)
        .filter("a", Mark("a"))
        .filter("b", Mark("b"))
        .filter("elsewhere", Elsewhere)
        .filter("answer", Answer)
        .filter("panic", Panic)
        .filter("dated", Dated)
}

impl Filter for Idle {
    fn on_request(&self, _: &mut RequestEdit<'_>, _: &FilterContext<'_>) -> Flow {
        Flow::Continue
    }
}

/// Adds its observations to requests and responses.
impl Filter for Mark {
    fn on_request(&self, head: &mut RequestEdit<'_>, context: &FilterContext<'_>) -> Flow {
        assert!(context.connection.remote.is_some());
        let fields: Vec<_> = head
            .headers()
            .filter(|(name, _)| !name.eq_ignore_ascii_case("x-seen"))
            .map(|(name, value)| {
                (
                    name.to_lowercase(),
                    String::from_utf8_lossy(value).into_owned(),
                )
            })
            .collect();
        let line = (
            head.method(),
            head.path(),
            head.query(),
            head.authority(),
            head.version(),
        );
        let seen = format!("{} {line:?} {fields:?}", self.0);
        head.append("X-Seen", seen).unwrap();
        head.append("x-mark", self.0).unwrap();
        head.set("X-Keep", self.0).unwrap();
        head.remove("x-OLD").unwrap();
        Flow::Continue
    }

    fn on_response(&self, head: &mut ResponseEdit<'_>, context: &FilterContext<'_>) {
        let fields: Vec<_> = head
            .headers()
            .filter(|(name, _)| !name.eq_ignore_ascii_case("x-seen"))
            .map(|(name, value)| {
                (
                    name.to_lowercase(),
                    String::from_utf8_lossy(value).into_owned(),
                )
            })
            .collect();
        let seen = format!(
            "{} {} {} {fields:?}",
            self.0,
            context.route.id(),
            head.status()
        );
        head.append("X-Seen", seen).unwrap();
        head.append("x-a", self.0).unwrap();
        head.remove("Server").unwrap();
    }
}

impl Filter for Elsewhere {
    fn on_request(&self, head: &mut RequestEdit<'_>, _: &FilterContext<'_>) -> Flow {
        head.set_path("/else/where%2F").unwrap();
        head.set_query(Some("a=b&c")).unwrap();
        head.set_host("elsewhere.example:8").unwrap();
        Flow::Continue
    }
}

impl Filter for Answer {
    fn on_request(&self, head: &mut RequestEdit<'_>, _: &FilterContext<'_>) -> Flow {
        let basic = HeaderValue::from_static("Basic");
        let reply = |status| Reply::new(status).with_header(http::header::WWW_AUTHENTICATE, basic);
        match head.path() {
            "/204" => reply(StatusCode::NO_CONTENT).with_body("never sent").into(),
            "/304" => reply(StatusCode::NOT_MODIFIED).into(),
            "/empty" => reply(StatusCode::OK).into(),
            _ => reply(StatusCode::UNAUTHORIZED)
                .with_body("who are you?")
                .into(),
        }
    }
}

impl Filter for Panic {
    fn on_request(&self, head: &mut RequestEdit<'_>, _: &FilterContext<'_>) -> Flow {
        assert_ne!(head.path(), "/panic", "as the path says");
        Flow::Continue
    }

    fn on_response(&self, head: &mut ResponseEdit<'_>, _: &FilterContext<'_>) {
        assert_ne!(head.status(), 200, "as the test wants");
    }
}

/// Removes the date of some responses, and sets that of others.
impl Filter for Dated {
    fn on_request(&self, _: &mut RequestEdit<'_>, _: &FilterContext<'_>) -> Flow {
        Flow::Continue
    }

    fn on_response(&self, head: &mut ResponseEdit<'_>, _: &FilterContext<'_>) {
        match head.header("date").is_some() {
            true => head.remove("date").unwrap(),
            false => head.set("date", "today").unwrap(),
        }
    }
}

const GET: &str = "GET /api/items/7?q=1 HTTP/1.1\r\nHost: shop.example\r\nX-Old: 1\r\nX-Keep: 2\r\nConnection: \
    x-hop\r\nX-Hop: 3\r\nCookie: a=b\r\n\r\n";

#[tokio::test]
async fn what_they_see_and_change_is_the_same() {
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
            compare_forwarded(&name, &route, base, GET, OK).await;
        }
        let post = "POST /p HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabc";
        compare_forwarded(&filters.to_string(), &route, "", post, OK).await;
        let options = "OPTIONS * HTTP/1.1\r\nHost: h\r\n\r\n";
        compare_forwarded(&filters.to_string(), &route, "", options, OK).await;
    }
}

#[tokio::test]
async fn transforms_come_after_them() {
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
        json!([{ "HttpMethodChange": "GET", "Set": "POST" }]),
    ] {
        let route = json!({
            "Match": { "Path": "/api/{kind}/{**rest}" },
            "Filters": ["a", "elsewhere"],
            "Transforms": transforms,
        });
        compare_forwarded(&transforms.to_string(), &route, "", GET, OK).await;
    }
}

/// More changes than fit without an allocation.
#[tokio::test]
async fn many_changes_are_made_in_order() {
    let filters: Vec<_> = (0..20).flat_map(|_| ["a", "b"]).collect();
    let route = json!({ "Filters": filters, "Transforms": [{ "RequestHeaderRemove": "X-Seen" }] });
    let short = OK.replace("X-A: 1\r\nX-A: 2\r\n", "");
    let request = "GET / HTTP/1.1\r\nHost: h\r\n\r\n";
    let seen = compare("40 filters", &route, "", request, short.leak()).await;
    assert_eq!(seen.matches("x-mark: ").count(), 40);
}

#[tokio::test]
async fn their_answers_are_the_same() {
    for filters in [json!(["answer"]), json!(["a", "dated", "answer", "b"])] {
        let always = json!({ "ResponseHeader": "X-Added", "Set": "1", "When": "Always" });
        let route = json!({ "Filters": filters, "Transforms": [always] });
        for request in [
            "GET /401 HTTP/1.1\r\nHost: h\r\n\r\n",
            "GET /204 HTTP/1.1\r\nHost: h\r\n\r\n",
            "GET /304 HTTP/1.1\r\nHost: h\r\n\r\n",
            "GET /empty HTTP/1.1\r\nHost: h\r\n\r\n",
            "HEAD /401 HTTP/1.1\r\nHost: h\r\n\r\n",
            "POST /401 HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabc",
            "POST /401 HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
        ] {
            let seen = compare(request, &route, "", request, OK).await;
            assert!(seen.contains("www-authenticate: Basic"), "{seen}");
        }
    }
}

#[tokio::test]
async fn what_the_proxy_says_itself_is_shown_to_them() {
    let route = json!({ "Filters": ["a", "dated", "b"] });
    for (name, answer) in [
        ("not a response", "SSH-2.0-OpenSSH_9.2\r\n\r\n"),
        (
            "a body that is broken from the start",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n",
        ),
    ] {
        let seen = compare(name, &route, "", GET, answer).await;
        assert!(seen.contains("502 Bad Gateway"), "{seen}");
        assert!(seen.contains("x-a: b"), "{seen}");
    }
}

#[tokio::test]
async fn their_panics_are_the_same() {
    for filters in [json!(["panic"]), json!(["a", "panic", "b"])] {
        let route = json!({ "Filters": filters });
        for request in ["GET /panic HTTP/1.1\r\nHost: h\r\n\r\n", GET] {
            let seen = compare(request, &route, "", request, OK).await;
            assert!(seen.contains("500 Internal Server Error"), "{seen}");
        }
    }
}
