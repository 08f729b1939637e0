//! The bodies of errors, in the form that clients prefer.

use std::sync::Arc;

use http::{HeaderValue, StatusCode};
use proxy_runtime::filter::{Filter, FilterContext, Flow, Reply, RequestEdit};
use proxy_runtime::layer::RouteService;
use proxy_runtime::policy::{PolicyDecision, PolicySource, RoutePolicies};
use proxy_runtime::proxy_model::compiled::Route;
use proxy_runtime::proxy_model::config::ProxyConfig;
use proxy_runtime::proxy_model::{Problems, Snapshot};
use proxy_runtime::server::ServerHandle;
use proxy_runtime::{ConnectionInfo, ErrorPages, Proxy};
use serde_json::json;
use testkit::client::Protocol;
use testkit::raw::RawOrigin;
use testkit::time::guarded;
use tower_layer::layer_fn;

use crate::server::support::connections;
use crate::server::ways::{as_bytes, over_types};

const HTML: &str = "text/html; charset=utf-8";

/// Rejects everything that asks for `/denied`.
struct Denies;

impl RoutePolicies for Denies {
    fn judge(&self, head: &mut RequestEdit<'_>, _: &Route, _: ConnectionInfo) -> PolicyDecision {
        match head.path() {
            path if path.ends_with("denied") => PolicyDecision::Respond(
                Reply::new(StatusCode::FORBIDDEN).with_detail("Not for \"you\"."),
            ),
            _ => PolicyDecision::Pass,
        }
    }
}

impl PolicySource for Denies {
    fn of_routes(
        &self,
        snapshot: &Snapshot,
    ) -> Result<Vec<Option<Arc<dyn RoutePolicies>>>, Problems> {
        let policies = || Some(Arc::new(Self) as Arc<dyn RoutePolicies>);
        Ok(snapshot.routes().iter().map(|_| policies()).collect())
    }
}

/// A filter with a body of its own.
struct Says;

impl Filter for Says {
    fn on_request(&self, head: &mut RequestEdit<'_>, _: &FilterContext<'_>) -> Flow {
        match head.path() {
            "/says" => Flow::Respond(Reply::new(StatusCode::CONFLICT).with_body("as it is")),
            _ => Flow::Continue,
        }
    }
}

fn proxy(negotiates: bool, pages: ErrorPages) -> (Proxy, [RawOrigin; 2]) {
    let origin = RawOrigin::answering("HTTP/1.1 500 Oops\r\nContent-Length: 4\r\n\r\noops");
    let broken = RawOrigin::answering("bad\r\n\r\n");
    let route = |path: &str, cluster: &str| json!({ "ClusterId": cluster, "Match": { "Path": path }, "Filters": ["says"] });
    let mut layered = route("/layered-{rest}", "broken");
    layered["Layers"] = json!(["pass"]);
    let config = json!({
        "Routes": {
            "origin": route("/origin", "origin"),
            "broken": route("/broken", "broken"),
            "empty": route("/empty", "empty"),
            "says": route("/says", "origin"),
            "denied": route("/denied", "origin"),
            "layered": layered,
            "fixed": { "Match": { "Path": "/fixed" }, "Respond": { "Status": 410, "Body": "gone" } },
            "fixed_denied": { "Match": { "Path": "/fixed-denied" }, "Respond": { "Status": 410 } },
        },
        "Clusters": {
            "origin": { "Destinations": { "d": { "Address": origin.url() } } },
            "broken": { "Destinations": { "d": { "Address": broken.url() } } },
            "empty": {},
        },
    });
    let config = ProxyConfig::from_json(&config.to_string()).unwrap();
    let builder = Proxy::builder()
        .filter("says", Says)
        .layer("pass", layer_fn(|rest: RouteService| rest))
        .policies(Arc::new(Denies))
        .negotiate_errors(negotiates)
        .error_pages(pages);
    let (snapshot, _) = Snapshot::compile(config, &builder.compile_options()).unwrap();
    let (proxy, driver) = builder.snapshot(Arc::new(snapshot)).build().unwrap();
    tokio::spawn(driver);
    (proxy, [origin, broken])
}

/// The paths with the status of their responses, and what is said of it.
const PATHS: [(&str, u16, &str, &str); 7] = [
    ("/nowhere", 404, "Not Found", ""),
    ("/empty", 503, "Service Unavailable", ""),
    ("/broken", 502, "Bad Gateway", ""),
    ("/denied", 403, "Forbidden", "Not for \"you\"."),
    ("/fixed-denied", 403, "Forbidden", "Not for \"you\"."),
    ("/layered-denied", 403, "Forbidden", "Not for \"you\"."),
    ("/layered-broken", 502, "Bad Gateway", ""),
];

/// Responses that others have made.
const OTHERS: [(&str, u16, &str); 3] = [
    ("/origin", 500, "oops"),
    ("/says", 409, "as it is"),
    ("/fixed", 410, "gone"),
];

fn expected(kind: &str, (status, reason, detail): (u16, &str, &str)) -> String {
    match kind {
        "application/problem+json" => {
            let mut problem = json!({ "type": "about:blank", "title": reason, "status": status });
            if !detail.is_empty() {
                problem["detail"] = json!(detail);
            }
            problem.to_string()
        }
        "text/html; charset=utf-8" => {
            let detail = match detail {
                "" => String::new(),
                detail => format!("<p>{detail}</p>"),
            };
            format!("<body><h1>{status} {reason}</h1>{detail}</body>")
        }
        _ if detail.is_empty() => format!("{status} {reason}\n"),
        _ => format!("{detail}\n"),
    }
}

#[tokio::test]
async fn errors_have_the_form_that_a_client_prefers() {
    const TEXT: &str = "text/plain; charset=utf-8";
    const PROBLEM: &str = "application/problem+json";
    const BROWSER: &str = "text/html,application/xhtml+xml,*/*;q=0.8";
    for (negotiates, accept, kind) in [
        (true, Some("application/json"), PROBLEM),
        (true, Some(BROWSER), HTML),
        (true, Some("*/*"), TEXT),
        (true, None, TEXT),
        (false, Some("application/json"), TEXT),
        (false, Some(BROWSER), TEXT),
    ] {
        let (proxy, _origins) = proxy(negotiates, ErrorPages::default());
        for serve in [as_bytes as fn(&Proxy) -> ServerHandle, over_types] {
            let server = serve(&proxy);
            let address = server.local_addrs()[0];
            for (path, status, reason, detail) in PATHS {
                for mut client in connections(address).await {
                    let mut request = client.request("GET", path);
                    if let Some(accept) = accept {
                        request = request.header("accept", accept);
                    }
                    let request = request.body(testkit::body::empty()).unwrap();
                    let answer = guarded(path, client.send(request)).await.unwrap();
                    let label = format!("{path} {accept:?} {:?}", client.protocol());
                    assert_eq!(answer.status, status, "{label}");
                    assert_eq!(answer.header("content-type"), Some(kind), "{label}");
                    let varies = (kind != TEXT).then_some("Accept");
                    assert_eq!(answer.header("vary"), varies, "{label}");
                    let (text, expected) =
                        (answer.text(), expected(kind, (status, reason, detail)));
                    match kind {
                        PROBLEM => {
                            let problem: serde_json::Value = serde_json::from_str(&text).unwrap();
                            let expected: serde_json::Value =
                                serde_json::from_str(&expected).unwrap();
                            assert_eq!(problem, expected, "{label}");
                        }
                        HTML => assert!(text.contains(&expected), "{label}: {text}"),
                        _ => assert_eq!(text, expected, "{label}"),
                    }
                }
            }
            for (path, status, body) in OTHERS {
                for mut client in connections(address).await {
                    let request = client.request("GET", path);
                    let request = request.header("accept", accept.unwrap_or("*/*"));
                    let request = request.body(testkit::body::empty()).unwrap();
                    let answer = guarded(path, client.send(request)).await.unwrap();
                    assert_eq!((answer.status.as_u16(), &*answer.text()), (status, body));
                    assert_eq!(answer.header("vary"), None);
                }
            }
        }
    }
}

fn pages() -> ErrorPages {
    let [html, json] = [HTML, "application/json"].map(HeaderValue::from_static);
    ErrorPages::default()
        .with_page(500..=599, html.clone(), "<h1>Back soon</h1>")
        .with_page(404..=404, html.clone(), "<h1>Not here</h1>")
        .with_page(403..=403, html, "x".repeat(60_000))
        .with_page(502..=502, json, "{\"reason\":\"down\"}")
}

/// Sends a request for `path` over each connection, and returns the status, the type and the body of each response.
async fn asked(
    proxy: &Proxy,
    (method, path): (&str, &str),
    fields: &[(&str, &str)],
) -> Vec<(u16, Option<String>, String)> {
    let mut all = Vec::new();
    for serve in [as_bytes as fn(&Proxy) -> ServerHandle, over_types] {
        let server = serve(proxy);
        for mut client in connections(server.local_addrs()[0]).await {
            let mut request = client.request(method, path);
            for (name, value) in fields {
                request = request.header(*name, *value);
            }
            let request = request.body(testkit::body::empty()).unwrap();
            let answer = guarded(path, client.send(request)).await.unwrap();
            let kind = answer.header("content-type").map(str::to_owned);
            all.push((answer.status.as_u16(), kind, answer.text()));
        }
    }
    all
}

#[tokio::test]
async fn pages_take_the_place_of_the_proxys_own_errors() {
    let json = "application/json";
    let long = "x".repeat(60_000);
    let (down, not_here) = ("<h1>Back soon</h1>", "<h1>Not here</h1>");
    let broken = "{\"reason\":\"down\"}";
    let plain = "text/plain; charset=utf-8";
    let (proxy, _origins) = proxy(false, pages());
    for (path, status, kind, body) in [
        ("/nowhere", 404, HTML, not_here),
        ("/empty", 503, HTML, down),
        ("/broken", 502, json, broken),
        ("/denied", 403, HTML, &*long),
        ("/fixed-denied", 403, HTML, &long),
        ("/layered-denied", 403, HTML, &long),
        ("/layered-broken", 502, json, broken),
    ] {
        for answer in asked(&proxy, ("GET", path), &[("accept", plain)]).await {
            let (said, kind) = ((status, Some(kind.to_owned()), body.to_owned()), kind);
            assert!(answer == said, "{path} {kind} {} {:?}", answer.0, answer.1);
        }
        for (said, _, body) in asked(&proxy, ("HEAD", path), &[]).await {
            assert_eq!((said, &*body), (status, ""), "{path}");
        }
    }
    for (path, status, body) in OTHERS {
        for (said, _, text) in asked(&proxy, ("GET", path), &[]).await {
            assert_eq!((said, &*text), (status, body), "{path}");
        }
    }
    let negotiating = self::proxy(true, pages()).0;
    for (path, accept, kind, body) in [
        ("/nowhere", "text/html", HTML, not_here),
        ("/nowhere", "*/*", plain, "404 Not Found\n"),
        ("/empty", "text/html", HTML, down),
        ("/layered-broken", "application/json", json, broken),
        ("/layered-denied", "text/html", HTML, &long),
        ("/layered-denied", "*/*", plain, "Not for \"you\".\n"),
    ] {
        for (_, told, text) in asked(&negotiating, ("GET", path), &[("accept", accept)]).await {
            assert_eq!(
                (told.as_deref(), &*text),
                (Some(kind), body),
                "{path} {accept}"
            );
        }
    }
    // Later pages count from the next error on.
    proxy.set_error_pages(ErrorPages::default());
    for (_, _, body) in asked(&proxy, ("GET", "/empty"), &[]).await {
        assert_eq!(body, "503 Service Unavailable\n");
    }
}

#[tokio::test]
async fn calls_of_grpc_get_no_page() {
    let (proxy, _origins) = proxy(false, pages());
    let fields = [("content-type", "application/grpc"), ("te", "trailers")];
    for (path, grpc_status) in [("/nowhere", "12"), ("/empty", "14"), ("/denied", "7")] {
        for serve in [as_bytes as fn(&Proxy) -> ServerHandle, over_types] {
            let server = serve(&proxy);
            let all = connections(server.local_addrs()[0]).await;
            for mut client in all
                .into_iter()
                .filter(|client| client.protocol() == Protocol::Http2)
            {
                let mut request = client.request("POST", path);
                for (name, value) in fields {
                    request = request.header(name, value);
                }
                let request = request.body(testkit::body::empty()).unwrap();
                let answer = guarded(path, client.send(request)).await.unwrap();
                assert_eq!(answer.status, 200, "{path}");
                assert_eq!(answer.header("grpc-status"), Some(grpc_status), "{path}");
                assert_eq!(answer.header("content-type"), Some("application/grpc"));
                assert_eq!(answer.text(), "");
            }
        }
    }
}
