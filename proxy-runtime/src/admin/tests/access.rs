//! Requests with and without tokens and certificates.

use std::time::Duration;

use http::header::{AUTHORIZATION, WWW_AUTHENTICATE};

use super::*;

const TOKEN: &str = "0123456789abcdef";

/// The paths that need a token, with their status.
const CLOSED: [(&str, u16); 6] = [
    ("/", 200),
    ("/assets/app.js", 200),
    ("/api/v1/overview", 200),
    ("/api/v1/config", 200),
    ("/metrics", 200),
    ("/nothing", 404),
];

fn closed_admin() -> Admin {
    let (proxy, _driver) = Proxy::builder().build().unwrap();
    let tokens = AdminTokens::parse(TOKEN).unwrap();
    Admin::builder(proxy).tokens(tokens).build()
}

fn ask_with(admin: &Admin, path: &str, authorization: Option<&str>) -> Response<bytes::Bytes> {
    let mut request = Request::get(path).header(HOST, "127.0.0.1:9901");
    if let Some(value) = authorization {
        request = request.header(AUTHORIZATION, value);
    }
    admin.respond(&request.body(()).unwrap())
}

#[tokio::test]
async fn only_health_is_answered_without_a_token() {
    let admin = closed_admin();
    for path in ["/healthz", "/readyz"] {
        assert_eq!(ask(&admin, path).status(), 200, "{path}");
    }
    for (path, expected) in CLOSED {
        for wrong in [
            None,
            Some("Bearer fedcba9876543210"),
            Some("Basic bm86bm8="),
        ] {
            let response = ask_with(&admin, path, wrong);
            assert_eq!(response.status(), 401, "{path} {wrong:?}");
            let challenge = response.headers()[WWW_AUTHENTICATE].to_str().unwrap();
            assert!(challenge.starts_with("Basic realm="), "{challenge}");
            let body = String::from_utf8_lossy(response.body());
            assert!(!body.contains(TOKEN) && !body.contains("html"), "{body}");
        }
        let bearer = format!("Bearer {TOKEN}");
        let response = ask_with(&admin, path, Some(&bearer));
        assert_eq!(response.status(), expected, "{path}");
    }
    let rejected = 3 * CLOSED.len();
    let line = format!("proxy_admin_rejected_requests_total {rejected}\n");
    assert!(admin.metrics().contains(&line), "{}", admin.metrics());
}

#[tokio::test]
async fn a_host_that_others_own_is_rejected_with_a_token_too() {
    let admin = closed_admin();
    let request = Request::get("/api/v1/config")
        .header(HOST, "rebound.example")
        .header(AUTHORIZATION, format!("Bearer {TOKEN}"));
    let response = admin.respond(&request.body(()).unwrap());
    assert_eq!(response.status(), 421);
}

#[tokio::test]
async fn other_tokens_replace_those_of_before() {
    let admin = closed_admin();
    let (old, new) = (format!("Bearer {TOKEN}"), "Bearer another-token-of-16");
    admin.set_tokens(AdminTokens::parse(&new["Bearer ".len()..]).unwrap());
    assert_eq!(ask_with(&admin, "/metrics", Some(&old)).status(), 401);
    assert_eq!(ask_with(&admin, "/metrics", Some(new)).status(), 200);
}

/// A log that remembers what it was told.
#[derive(Default)]
struct Log(parking_lot::Mutex<Option<(String, Duration)>>);

impl AdminLog for Log {
    fn override_filter(&self, filter: Option<(&str, Duration)>) -> Result<(), String> {
        if filter.is_some_and(|(filter, _)| filter == "loud") {
            return Err("`loud` is no level".to_owned());
        }
        *self.0.lock() = filter.map(|(filter, time)| (filter.to_owned(), time));
        Ok(())
    }

    fn filter(&self) -> (String, Option<Duration>) {
        match &*self.0.lock() {
            Some((filter, time)) => (filter.clone(), Some(*time)),
            None => ("info".to_owned(), None),
        }
    }
}

fn change(admin: &Admin, method: &str, query: &str) -> (u16, Value) {
    let request = Request::builder()
        .method(method)
        .uri(format!("/api/v1/log{query}"))
        .header(HOST, "127.0.0.1:9901")
        .header(AUTHORIZATION, format!("Bearer {TOKEN}"));
    let response = admin.respond(&request.body(()).unwrap());
    let body = serde_json::from_slice(response.body()).unwrap_or_default();
    (response.status().as_u16(), body)
}

#[tokio::test]
async fn the_filter_of_the_log_is_changed_for_a_while() {
    let (proxy, _driver) = Proxy::builder().build().unwrap();
    let tokens = AdminTokens::parse(TOKEN).unwrap();
    let log = Arc::new(Log::default());
    let admin = Admin::builder(proxy.clone())
        .tokens(tokens)
        .log(log)
        .build();
    let applies = |filter: &str, seconds: Option<u64>| {
        (
            200,
            serde_json::json!({ "filter": filter, "expires_in": seconds }),
        )
    };
    assert_eq!(change(&admin, "GET", ""), applies("info", None));
    let debug = applies("debug", Some(600));
    assert_eq!(change(&admin, "PUT", "?filter=debug"), debug);
    let trace = applies("info,proxy::request=trace", Some(30));
    let query = "?filter=info,proxy::request%3Dtrace&seconds=30";
    assert_eq!(change(&admin, "PUT", query), trace);
    for query in [
        "",
        "?filter=",
        "?filter=loud",
        "?filter=debug&seconds=0",
        "?filter=debug&seconds=86401",
        "?filter=debug&seconds=soon",
    ] {
        let (status, body) = change(&admin, "PUT", query);
        assert!(status == 400 && body["error"].is_string(), "{query} {body}");
    }
    assert_eq!(change(&admin, "GET", ""), trace, "nothing has changed");
    assert_eq!(change(&admin, "DELETE", ""), applies("info", None));
    assert_eq!(change(&admin, "POST", "?filter=debug").0, 405);

    // Clients that reach the page may read, and not more.
    let open = Admin::builder(proxy.clone()).log(Arc::new(Log::default()));
    let open = open.build();
    for method in ["PUT", "DELETE"] {
        assert_eq!(change(&open, method, "?filter=debug").0, 403, "{method}");
    }
    assert_eq!(change(&open, "GET", ""), applies("info", None));
    let without = Admin::builder(proxy).build();
    assert_eq!(change(&without, "GET", "").0, 404);
}
