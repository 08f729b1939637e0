//! Policies around the routes of a proxy. The clusters have no destinations, so 503 means that a request passed.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Empty;
use proxy_model::json::parse_document;
use proxy_model::{Problems, Snapshot};
use proxy_runtime::layer::{ProxyRequestBody, RouteFuture, RouteService};
use proxy_runtime::{ConnectionInfo, Proxy, ProxyBody, ProxyBuilder, ProxyService};
use tower_layer::layer_fn;
use tower_service::Service;

use crate::Policies;

/// Compiles the policies and the routes of a document.
pub(crate) fn snapshot(builder: &ProxyBuilder, policies: &str, routes: &str) -> Arc<Snapshot> {
    let text = format!(
        r#"{{"Policies":{{{policies}}},"ReverseProxy":{{"Routes":{{{routes}}},"Clusters":{{"c":{{}}}}}}}}"#
    );
    snapshot_of(builder, &text)
}

/// Compiles a document.
pub(super) fn snapshot_of(builder: &ProxyBuilder, text: &str) -> Arc<Snapshot> {
    let document = parse_document(text).unwrap();
    let mut problems = Problems::new();
    let policies = crate::read(&document, &mut problems);
    assert!(!problems.has_errors(), "{problems}");
    let options = builder.compile_options().with_policies(policies);
    let section = document.get("ReverseProxy").unwrap();
    Arc::new(
        Snapshot::read(section, "/ReverseProxy", &options)
            .unwrap()
            .0,
    )
}

fn service(builder: ProxyBuilder, policies: &str, routes: &str) -> ProxyService {
    let builder = builder.policies(Arc::new(Policies::new()));
    let snapshot = snapshot(&builder, policies, routes);
    let (proxy, _driver) = builder.snapshot(snapshot).build().unwrap();
    proxy.service()
}

/// Sends a request such as `GET /path` with headers such as `Origin: x`, from 192.0.2.1.
pub(super) async fn send(
    service: &mut ProxyService,
    line: &str,
    headers: &[&str],
) -> Response<ProxyBody> {
    let (method, path) = line.split_once(' ').unwrap();
    let mut request = Request::builder().method(method).uri(path);
    for header in headers {
        let (name, value) = header.split_once(": ").unwrap();
        request = request.header(name, value);
    }
    let client = ConnectionInfo::new("192.0.2.1:50000".parse().unwrap());
    let request = request.extension(client).body(Empty::<Bytes>::new());
    let answered: Result<_, Infallible> = service.call(request.unwrap()).await;
    answered.unwrap()
}

pub(super) async fn statuses(service: &mut ProxyService, line: &str, times: usize) -> Vec<u16> {
    let mut statuses = Vec::new();
    for _ in 0..times {
        statuses.push(send(service, line, &[]).await.status().as_u16());
    }
    statuses
}

fn field<'a>(response: &'a Response<ProxyBody>, name: &str) -> Option<&'a str> {
    response
        .headers()
        .get(name)
        .map(|value| value.to_str().unwrap())
}

const TWO_A_MINUTE: &str = r#""Kind":"FixedWindow","PermitLimit":2,"Window":"1m""#;

#[tokio::test(start_paused = true)]
async fn a_route_takes_as_many_requests_as_its_limiter_lets_pass() {
    let policies = format!(r#""RateLimiter":{{"few":{{{TWO_A_MINUTE}}}}}"#);
    let routes = r#"
        "r":{"ClusterId":"c","Match":{"Path":"/r"},"RateLimiterPolicy":"FEW"},
        "free":{"ClusterId":"c","Match":{"Path":"/free"}}"#;
    let mut service = service(Proxy::builder(), &policies, routes);
    assert_eq!(statuses(&mut service, "GET /r", 3).await, [503, 503, 429]);
    let response = send(&mut service, "GET /r", &[]).await;
    assert_eq!(field(&response, "retry-after"), Some("60"));
    assert_eq!(field(&response, "ratelimit"), Some("\"few\";r=0;t=60"));
    assert_eq!(statuses(&mut service, "GET /free", 3).await, [503; 3]);
    let response = send(&mut service, "GET /free", &[]).await;
    assert_eq!(field(&response, "ratelimit"), None);

    tokio::time::advance(Duration::from_secs(60)).await;
    let response = send(&mut service, "GET /r", &[]).await;
    assert_eq!(response.status(), 503);
    assert_eq!(field(&response, "ratelimit"), Some("\"few\";r=1;t=60"));
}

/// The remaining quota is reported as of the end of the wait, not of its beginning.
#[tokio::test(start_paused = true)]
async fn a_request_that_has_waited_hears_what_is_left_then() {
    let policies = r#""RateLimiter":{"slow":
        {"Kind":"FixedWindow","PermitLimit":3,"Window":"1m","QueueLimit":2}}"#;
    let routes = r#""r":{"ClusterId":"c","Match":{"Path":"/r"},"RateLimiterPolicy":"slow"}"#;
    let mut service = service(Proxy::builder(), policies, routes);
    assert_eq!(statuses(&mut service, "GET /r", 3).await, [503; 3]);
    tokio::time::advance(Duration::from_secs(15)).await;
    let wait = |mut service: ProxyService| async move {
        let response = send(&mut service, "GET /r", &[]).await;
        let told = ["ratelimit", "ratelimit-policy"].map(|name| {
            let lines = response.headers().get_all(name).iter();
            lines
                .map(|line| line.to_str().unwrap().to_owned())
                .collect::<Vec<_>>()
        });
        (response.status().as_u16(), told)
    };
    let waiting = [service.clone(), service.clone()].map(|service| tokio::spawn(wait(service)));
    tokio::task::yield_now().await;
    let rejected = send(&mut service, "GET /r", &[]).await;
    assert_eq!(rejected.status(), 429);
    assert_eq!(field(&rejected, "ratelimit"), Some("\"slow\";r=0;t=45"));
    tokio::time::advance(Duration::from_secs(45)).await;
    let mut told = Vec::new();
    for waited in waiting {
        let (status, [left, policy]) = waited.await.unwrap();
        assert_eq!(
            (status, policy),
            (503, vec!["\"slow\";q=3;w=60".to_owned()])
        );
        told.push(left);
    }
    assert_eq!(told, [["\"slow\";r=1;t=60"], ["\"slow\";r=1;t=60"]]);
}

/// Calls the rest of the route twice, as a layer that retries.
#[derive(Clone)]
struct Twice(RouteService, Arc<AtomicUsize>);

impl Service<Request<ProxyRequestBody>> for Twice {
    type Response = Response<ProxyBody>;
    type Error = <RouteService as Service<Request<ProxyRequestBody>>>::Error;
    type Future =
        std::pin::Pin<Box<dyn Future<Output = Result<Response<ProxyBody>, Self::Error>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Service::<Request<ProxyRequestBody>>::poll_ready(&mut self.0, cx)
    }

    fn call(&mut self, request: Request<ProxyRequestBody>) -> Self::Future {
        let Self(mut rest, calls) = self.clone();
        Box::pin(async move {
            let mut first = Request::new(ProxyRequestBody::empty());
            *first.uri_mut() = request.uri().clone();
            *first.extensions_mut() = request.extensions().clone();
            for request in [first, request] {
                calls.fetch_add(1, Ordering::Relaxed);
                let call: RouteFuture = rest.call(request);
                let response = call.await?;
                if calls.load(Ordering::Relaxed) % 2 == 0 {
                    return Ok(response);
                }
            }
            unreachable!("the second call is the last")
        })
    }
}

/// Layers are inside of policies, so that a repeated request is one request.
#[tokio::test(start_paused = true)]
async fn a_retry_counts_once() {
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&calls);
    let layer = layer_fn(move |rest: RouteService| Twice(rest, Arc::clone(&counted)));
    let builder = Proxy::builder().layer("Twice", layer);
    let policies = format!(r#""RateLimiter":{{"few":{{{TWO_A_MINUTE}}}}}"#);
    let routes = r#""r":{"ClusterId":"c","Match":{"Path":"/r"},"RateLimiterPolicy":"few","Layers":["Twice"]}"#;
    let mut service = service(builder, &policies, routes);
    assert_eq!(statuses(&mut service, "GET /r", 3).await, [503, 503, 429]);
    assert_eq!(calls.load(Ordering::Relaxed), 4);
}

#[tokio::test(start_paused = true)]
async fn the_global_limiter_counts_all_routes_but_those_without() {
    let policies = format!(
        r#""RateLimiter":{{"Global":{{{TWO_A_MINUTE}}},
            "one":{{"Kind":"FixedWindow","PermitLimit":1,"Window":"1m","RejectionStatusCode":503}}}}"#
    );
    let routes = r#"
        "a":{"ClusterId":"c","Match":{"Path":"/a"}},
        "b":{"ClusterId":"c","Match":{"Path":"/b"},"RateLimiterPolicy":"Default"},
        "d":{"ClusterId":"c","Match":{"Path":"/d"},"RateLimiterPolicy":"disable"}"#;
    let mut all = service(Proxy::builder(), &policies, routes);
    assert_eq!(statuses(&mut all, "GET /a", 1).await, [503]);
    assert_eq!(statuses(&mut all, "GET /b", 2).await, [503, 429]);
    assert_eq!(statuses(&mut all, "GET /a", 1).await, [429]);
    assert_eq!(statuses(&mut all, "GET /d", 3).await, [503; 3]);

    // A route's own limiter is asked after the global one.
    let routes = r#""r":{"ClusterId":"c","Match":{"Path":"/r"},"RateLimiterPolicy":"one"}"#;
    let mut own = service(Proxy::builder(), &policies, routes);
    let mut limits = Vec::new();
    for _ in 0..3 {
        let response = send(&mut own, "GET /r", &[]).await;
        let all = response.headers().get_all("ratelimit").iter();
        let names: Vec<_> = all
            .map(|v| v.to_str().unwrap().split(';').next().unwrap())
            .collect();
        limits.push((response.status().as_u16(), names.join(" ")));
    }
    assert_eq!(limits[0], (503, "\"Global\" \"one\"".to_owned()));
    assert_eq!(limits[1].0, 503);
    assert_eq!(limits[2], (429, "\"Global\"".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn a_permit_is_held_until_the_response_has_ended() {
    let policies = r#""RateLimiter":{"one":{"Kind":"Concurrency","PermitLimit":1},
        "wait":{"Kind":"Concurrency","PermitLimit":1,"QueueLimit":1}}"#;
    let routes = r#"
        "one":{"ClusterId":"c","Match":{"Path":"/one"},"RateLimiterPolicy":"one"},
        "wait":{"ClusterId":"c","Match":{"Path":"/wait"},"RateLimiterPolicy":"wait"}"#;
    let mut service = service(Proxy::builder(), policies, routes);
    let first = send(&mut service, "GET /one", &[]).await;
    let second = send(&mut service, "GET /one", &[]).await;
    assert_eq!(
        (first.status().as_u16(), second.status().as_u16()),
        (503, 429)
    );
    assert_eq!(field(&second, "retry-after"), None, "nobody knows when");
    drop(first);
    assert_eq!(statuses(&mut service, "GET /one", 2).await, [503, 503]);

    // One request waits, and a third one finds no place.
    let first = send(&mut service, "GET /wait", &[]).await;
    let mut other = service.clone();
    let waiting = tokio::spawn(async move { send(&mut other, "GET /wait", &[]).await.status() });
    tokio::task::yield_now().await;
    assert_eq!(statuses(&mut service, "GET /wait", 1).await, [429]);
    assert!(!waiting.is_finished());
    drop(first);
    assert_eq!(waiting.await.unwrap(), 503);
}

const WEB: &str = r#""Cors":{"web":{"Origins":["https://app.example"],"AllowCredentials":true,"Headers":["X-Own"],"Methods":["PUT"],"PreflightMaxAge":"10m"}}"#;

/// A preflight has no credentials, so no policy could admit it.
#[tokio::test(start_paused = true)]
async fn a_preflight_is_answered_before_authorization_and_limits() {
    let policies = format!(
        r#"{WEB},"Authorization":{{"nobody":{{"Networks":{{"Allow":["198.51.100.0/24"]}}}}}},
            "RateLimiter":{{"few":{{{TWO_A_MINUTE}}}}}"#
    );
    let routes = r#"
        "r":{"ClusterId":"c","Match":{"Path":"/r","Methods":["PUT"]},"CorsPolicy":"web",
            "AuthorizationPolicy":"nobody","RateLimiterPolicy":"few"}"#;
    let mut service = service(Proxy::builder(), &policies, routes);
    let preflight = [
        "Origin: https://app.example",
        "Access-Control-Request-Method: PUT",
        "Access-Control-Request-Headers: x-own",
    ];
    for _ in 0..5 {
        let response = send(&mut service, "OPTIONS /r", &preflight).await;
        assert_eq!(response.status(), 204);
        for (name, value) in [
            ("access-control-allow-origin", Some("https://app.example")),
            ("access-control-allow-credentials", Some("true")),
            ("access-control-allow-methods", Some("PUT")),
            ("access-control-allow-headers", Some("X-Own")),
            ("access-control-max-age", Some("600")),
            ("vary", None),
            ("ratelimit", None),
        ] {
            assert_eq!(field(&response, name), value, "{name}");
        }
    }
    // The script has to see why it is refused, so the answer of a later policy permits it to read.
    let response = send(&mut service, "PUT /r", &preflight[..1]).await;
    assert_eq!(response.status(), 403);
    let origin = "access-control-allow-origin";
    assert_eq!(field(&response, origin), Some("https://app.example"));
    // OPTIONS that is no preflight is a request as any other, for which the route has no method.
    assert_eq!(statuses(&mut service, "OPTIONS /r", 1).await, [405]);
}

/// Denied requests take nothing from the limit of admitted ones.
#[tokio::test(start_paused = true)]
async fn requests_that_are_denied_are_not_counted() {
    let policies = format!(
        r#""Authorization":{{"known":{{"Networks":{{"Deny":["198.51.100.0/24"]}}}},
                "nobody":{{"Networks":{{"Allow":["198.51.100.0/24"]}}}}}},
            "RateLimiter":{{"few":{{{TWO_A_MINUTE}}}}}"#
    );
    let routes = r#"
        "open":{"ClusterId":"c","Match":{"Path":"/open"},"AuthorizationPolicy":"known","RateLimiterPolicy":"few"},
        "shut":{"ClusterId":"c","Match":{"Path":"/shut"},"AuthorizationPolicy":"nobody","RateLimiterPolicy":"few"}"#;
    let mut service = service(Proxy::builder(), &policies, routes);
    assert_eq!(statuses(&mut service, "GET /shut", 5).await, [403; 5]);
    assert_eq!(
        statuses(&mut service, "GET /open", 3).await,
        [503, 503, 429]
    );
}

#[tokio::test(start_paused = true)]
async fn routes_without_a_policy_have_the_fallback() {
    let policies = r#""Authorization":{
        "Fallback":{"Networks":{"Allow":["198.51.100.0/24"]}},
        "Default":{"Networks":{"Allow":["192.0.2.0/24"]}}}"#;
    let routes = r#"
        "unset":{"ClusterId":"c","Match":{"Path":"/unset"}},
        "default":{"ClusterId":"c","Match":{"Path":"/default"},"AuthorizationPolicy":"Default"},
        "anonymous":{"ClusterId":"c","Match":{"Path":"/anonymous"},"AuthorizationPolicy":"Anonymous"}"#;
    let mut some = service(Proxy::builder(), policies, routes);
    for (line, expected) in [
        ("GET /unset", 403),
        ("GET /default", 503),
        ("GET /anonymous", 503),
    ] {
        assert_eq!(statuses(&mut some, line, 1).await, [expected], "{line}");
    }
    // An undefined policy cannot be checked.
    let mut none = service(Proxy::builder(), "", routes);
    for (line, expected) in [
        ("GET /unset", 503),
        ("GET /default", 500),
        ("GET /anonymous", 503),
    ] {
        assert_eq!(statuses(&mut none, line, 1).await, [expected], "{line}");
    }
}

/// A proxy that reads policies without a source stays closed.
#[tokio::test(start_paused = true)]
async fn without_policies_a_route_that_needs_one_is_closed() {
    let policies = r#""Authorization":{"all":{"Networks":{"Deny":["198.51.100.0/24"]}}}"#;
    let routes = r#""r":{"ClusterId":"c","Match":{"Path":"/r"},"AuthorizationPolicy":"all"}"#;
    let builder = Proxy::builder();
    let snapshot = snapshot(&builder, policies, routes);
    let (proxy, _driver) = builder.snapshot(snapshot).build().unwrap();
    let mut service = proxy.service();
    assert_eq!(statuses(&mut service, "GET /r", 1).await, [500]);
    let told = proxy.unsupported().to_string();
    assert!(told.contains("/Routes/r/AuthorizationPolicy"), "{told}");
}

fn basic(credentials: &str) -> String {
    use base64::Engine as _;
    let encoded = base64::engine::general_purpose::STANDARD.encode(credentials);
    format!("Authorization: Basic {encoded}")
}

#[tokio::test]
async fn passwords_are_asked_for_and_checked() {
    let policies = format!(
        r#""Authorization":{{"staff":{{"Basic":{{"Realm":"the staff","Users":{{"ann":"{}"}}}}}}}}"#,
        bcrypt::hash("secret", 4).unwrap()
    );
    let routes = r#""r":{"ClusterId":"c","Match":{"Path":"/r"},"AuthorizationPolicy":"staff"}"#;
    let mut service = service(Proxy::builder(), &policies, routes);
    let long = format!("ann:{}", "x".repeat(100));
    for (header, expected) in [
        (basic("ann:secret"), 503),
        (basic("ann:secret"), 503),
        (basic("ann:wrong"), 401),
        (basic("bob:secret"), 401),
        (basic("ann:"), 401),
        (basic("ann"), 401),
        (basic(&long), 401),
        ("Authorization: basic YW5uOnNlY3JldA==".to_owned(), 503),
        ("Authorization: Basic !".to_owned(), 401),
        ("Authorization: Bearer x".to_owned(), 401),
        ("X-Other: x".to_owned(), 401),
    ] {
        let response = send(&mut service, "GET /r", &[&header]).await;
        assert_eq!(response.status(), expected, "{header}");
        let challenge = field(&response, "www-authenticate");
        let expected = (expected == 401).then_some("Basic realm=\"the staff\", charset=\"UTF-8\"");
        assert_eq!(challenge, expected, "{header}");
    }
}
