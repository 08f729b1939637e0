//! `explain` says of policies what a proxy does, as far as they decide alone.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use http::{HeaderValue, Request};
use http_body_util::BodyExt;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use proxy_runtime::explain::{Explanation, ProxySettings, Verdict, explain};
use proxy_runtime::layer::RouteService;
use proxy_runtime::{ConnectionInfo, ErrorPages, Proxy, ProxyBuilder};
use tower_layer::layer_fn;

use super::around::{send, snapshot};
use super::remote::{Script, answer};
use crate::Policies;

const POLICIES: &str = r#"
    "Authorization":{
        "away":{"Networks":{"Deny":["192.0.2.0/24"]}},
        "near":{"Networks":{"Allow":["192.0.2.0/24"]}},
        "known":{"Basic":{"Users":{"ann":"$2b$04$cVWp4XaNU8a4v1uMRum2SO026BWLIoQMD/TXg5uZV.0P.uO8m3YEm"}}},
        "ask":{"ForwardAuth":{"Address":"http://auth.example/","ResponseHeaders":["X-User"]}}},
    "Cors":{"web":{"Origins":["https://a.example"]},"all":{"Origins":["*"]}},
    "RateLimiter":{"many":{"Kind":"FixedWindow","PermitLimit":1000000,"Window":"1m"}}"#;

const AUTHORIZATION: [&str; 7] = ["", "away", "near", "known", "ask", "Default", "Anonymous"];
const CORS: [&str; 5] = ["", "web", "all", "Default", "Disable"];
const LIMITERS: [&str; 3] = ["", "many", "Default"];
const TARGETS: [&str; 5] = [
    r#""ClusterId":"c""#,
    r#""ClusterId":"missing""#,
    r#""Redirect":{"Scheme":"https","Host":"b.example"}"#,
    r#""Respond":{"Status":418}"#,
    r#""ClusterId":"c","Layers":["pass"]"#,
];

/// Pages whose bodies are their names.
fn pages() -> ErrorPages {
    let [html, json] = ["text/html", "application/json"].map(HeaderValue::from_static);
    ErrorPages::default()
        .with_page(400..=499, html.clone(), "rejected")
        .named("rejected")
        .with_page(403..=403, html, "403 text/html")
        .with_page(400..=599, json, "400-599 application/json")
}

fn builder(script: &Script) -> ProxyBuilder {
    let policies = Policies::new().with_transport(Arc::new(script.clone()));
    Proxy::builder()
        .negotiate_errors(true)
        .error_pages(pages())
        .policies(Arc::new(policies))
        .layer("pass", layer_fn(|rest: RouteService| rest))
}

/// A route with each combination, at `/authorization/cors/limiter/target`.
fn routes() -> String {
    let mut routes = Vec::new();
    for (a, authorization) in AUTHORIZATION.iter().enumerate() {
        for (c, cors) in CORS.iter().enumerate() {
            for (l, limiter) in LIMITERS.iter().enumerate() {
                for (t, target) in TARGETS.iter().enumerate() {
                    routes.push(format!(
                        r#""r{a}{c}{l}{t}":{{{target},"Match":{{"Path":"/{a}/{c}/{l}/{t}","Methods":["GET","OPTIONS","PUT"]}},
                        "AuthorizationPolicy":"{authorization}","CorsPolicy":"{cors}","RateLimiterPolicy":"{limiter}"}}"#
                    ));
                }
            }
        }
    }
    routes.join(",")
}

/// Returns true if only a real request shows what authorization says.
fn is_open(explanation: &Explanation) -> bool {
    let mut undecided = explanation.undecided_policies.iter();
    undecided.any(|policy| policy.starts_with("AuthorizationPolicy"))
}

fn explained_status(explanation: &Explanation) -> u16 {
    // The clusters have no destinations.
    assert_ne!(explanation.outcome, Verdict::Matched);
    explanation.status.unwrap().as_u16()
}

#[test]
fn explain_says_what_policies_do() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .build()
        .unwrap();
    let script = Script::new([answer(200, &[])]);
    let builder = builder(&script);
    let snapshot = snapshot(&builder, POLICIES, &routes());
    let mut settings = ProxySettings::default();
    settings.policies = Some(Arc::new(
        Policies::new().with_transport(Arc::new(script.clone())),
    ));
    settings.error_pages = pages();
    settings.negotiate_errors = true;
    let (proxy, _driver) = builder.snapshot(Arc::clone(&snapshot)).build().unwrap();
    let service = proxy.service();
    let place = (
        0..AUTHORIZATION.len(),
        0..CORS.len(),
        0..LIMITERS.len(),
        0..TARGETS.len(),
    );
    let origin = prop::sample::select(vec!["", "https://a.example", "https://evil.example"]);
    let credentials = prop::sample::select(vec!["", "Basic x", "Basic YW5uOng=", "Bearer t"]);
    let method = prop::sample::select(vec!["GET", "OPTIONS", "PUT", "DELETE"]);
    let accept = prop::sample::select(vec!["*/*", "text/html", "application/json"]);
    let request = (place, method, origin, any::<bool>(), credentials, accept);
    let pages_seen = AtomicUsize::new(0);
    let config = Config {
        cases: 1_000,
        ..Config::default()
    };
    let result = TestRunner::new(config).run(
        &request,
        |(place, method, origin, asks, credentials, accept)| {
            let (a, c, l, t) = place;
            let line = format!("{method} /{a}/{c}/{l}/{t}");
            let mut headers = vec!["Host: h.example".to_owned(), format!("Accept: {accept}")];
            if !origin.is_empty() {
                headers.push(format!("Origin: {origin}"));
            }
            if asks {
                headers.push("Access-Control-Request-Method: PUT".to_owned());
            }
            if !credentials.is_empty() {
                headers.push(format!("Authorization: {credentials}"));
            }
            let headers: Vec<_> = headers.iter().map(String::as_str).collect();
            let (parts, connection) = parts(&line, &headers);
            let asked = script.count();
            let live = proxy.explain(&parts, connection);
            let alone = explain(&snapshot, &settings, &parts, connection);
            prop_assert_eq!(script.count(), asked, "explain asks nobody");
            prop_assert_eq!(&live.undecided_policies, &alone.undecided_policies);
            prop_assert_eq!(explained_status(&live), explained_status(&alone));
            let response = runtime.block_on(send(&mut service.clone(), &line, &headers));
            if !is_open(&live) {
                let location = response.headers().get("location");
                let location = location.map(|location| location.to_str().unwrap());
                prop_assert_eq!(explained_status(&live), response.status().as_u16());
                prop_assert_eq!(live.location.as_deref(), location);
                prop_assert_eq!(&live.error_page, &alone.error_page);
                let body = runtime.block_on(response.into_body().collect()).unwrap();
                let body = String::from_utf8(body.to_bytes().to_vec()).unwrap();
                let names = ["rejected", "403 text/html", "400-599 application/json"];
                let page = names.contains(&&*body).then_some(body);
                pages_seen.fetch_add(usize::from(page.is_some()), Ordering::Relaxed);
                prop_assert_eq!(&live.error_page, &page);
            }
            Ok(())
        },
    );
    result.unwrap();
    assert!(pages_seen.into_inner() > 50, "pages are seen");
}

fn parts(line: &str, headers: &[&str]) -> (http::request::Parts, ConnectionInfo) {
    let (method, path) = line.split_once(' ').unwrap();
    let mut request = Request::builder().method(method).uri(path);
    for header in headers {
        let (name, value) = header.split_once(": ").unwrap();
        request = request.header(name, value);
    }
    let client = ConnectionInfo::new("192.0.2.1:50000".parse().unwrap());
    (request.body(()).unwrap().into_parts().0, client)
}

#[test]
fn what_a_policy_takes_from_a_request_is_not_shown_as_sent() {
    let script = Script::new([answer(200, &[])]);
    let builder = builder(&script);
    let routes =
        r#""r":{"ClusterId":"c","Match":{"Path":"/{**rest}"},"AuthorizationPolicy":"ask"}"#;
    let text = format!(
        r#"{{"Policies":{{{POLICIES}}},"ReverseProxy":{{"Routes":{{{routes}}},"Clusters":{{
            "c":{{"Destinations":{{"d":{{"Address":"http://127.0.0.1:1/"}}}}}}}}}}}}"#
    );
    let snapshot = super::around::snapshot_of(&builder, &text);
    let (proxy, _driver) = builder.snapshot(snapshot).build().unwrap();
    let (parts, client) = parts(
        "GET /a",
        &["Host: h.example", "X-User: root", "X-Other: kept"],
    );
    let explained = proxy.explain(&parts, client);
    let sent = explained.forwarded.unwrap().headers;
    let names: Vec<_> = sent.iter().map(|(name, _)| name.as_str()).collect();
    assert!(names.contains(&"X-Other"), "{names:?}");
    assert!(!names.contains(&"X-User"), "{names:?}");
}
