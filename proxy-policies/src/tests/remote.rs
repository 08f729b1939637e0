//! Policies that ask others, around the routes of a proxy. The clusters have no destinations, so 503 with the header
//! `x-passed` means that a request passed.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use discovery_http::{Transport, TransportError, TransportErrorKind};
use http::{Request, Response};
use parking_lot::Mutex;
use proxy_runtime::policy::PolicySource;
use proxy_runtime::{Cause, Proxy, ProxyService};

use super::around::{send, snapshot};
use crate::Policies;

/// An answer of another service: a status and headers, or silence for an hour, or a broken connection.
#[derive(Clone)]
pub(super) enum Scripted {
    Answer(u16, Vec<(&'static str, String)>, String),
    Silence,
    Broken,
}

/// A client of HTTP with these answers, the last of which is repeated.
#[derive(Clone)]
pub(super) struct Script {
    answers: Arc<Mutex<VecDeque<Scripted>>>,
    pub(super) requests: Arc<Mutex<Vec<Request<Bytes>>>>,
}

impl Script {
    pub(super) fn new(answers: impl IntoIterator<Item = Scripted>) -> Self {
        Self {
            answers: Arc::new(Mutex::new(answers.into_iter().collect())),
            requests: Arc::default(),
        }
    }

    pub(super) fn set(&self, answer: Scripted) {
        *self.answers.lock() = [answer].into();
    }

    pub(super) fn count(&self) -> usize {
        self.requests.lock().len()
    }

    pub(super) fn service(&self, policies: &str, routes: &str) -> ProxyService {
        let policies_of = Policies::new().with_transport(Arc::new(self.clone()));
        let builder = Proxy::builder().policies(Arc::new(policies_of));
        let snapshot = snapshot(&builder, policies, routes);
        let (proxy, _driver) = builder.snapshot(snapshot).build().unwrap();
        proxy.service()
    }
}

#[async_trait]
impl Transport for Script {
    async fn send(
        &self,
        request: Request<Bytes>,
        most: usize,
    ) -> Result<Response<Bytes>, TransportError> {
        self.requests.lock().push(request);
        let next = {
            let mut answers = self.answers.lock();
            match answers.len() {
                1 => answers[0].clone(),
                _ => answers.pop_front().unwrap(),
            }
        };
        match next {
            Scripted::Answer(_, _, body) if body.len() > most => {
                Err(TransportError::too_large(most))
            }
            Scripted::Answer(status, headers, body) => {
                let mut response = Response::builder().status(status);
                for (name, value) in headers {
                    response = response.header(name, value);
                }
                Ok(response.body(Bytes::from(body)).unwrap())
            }
            Scripted::Silence => {
                tokio::time::sleep(Duration::from_secs(3600)).await;
                Err(TransportError::new(TransportErrorKind::Connect, "late"))
            }
            Scripted::Broken => Err(TransportError::new(
                TransportErrorKind::Interrupted,
                "it broke",
            )),
        }
    }
}

pub(super) fn answer(status: u16, headers: &[(&'static str, &str)]) -> Scripted {
    let headers = headers.iter();
    let headers = headers.map(|(name, value)| (*name, (*value).to_owned()));
    Scripted::Answer(status, headers.collect(), "text".to_owned())
}

const FORWARD: &str = r#""Authorization":{"ask":{"ForwardAuth":{
    "Address":"http://auth.example/verify?x=1","ResponseHeaders":["X-User"],"Timeout":"2s"}}}"#;
const ROUTE: &str =
    r#""r":{"ClusterId":"c","Match":{"Path":"/{**rest}"},"AuthorizationPolicy":"ask"}"#;

#[tokio::test(start_paused = true)]
async fn a_service_is_asked_with_the_head_of_the_request() {
    let script = Script::new([answer(200, &[("x-user", "ann")])]);
    let mut service = script.service(FORWARD, ROUTE);
    let request = [
        "Host: shop.example",
        "Cookie: a=b",
        "Authorization: Bearer x",
        "X-Forwarded-Uri: /public",
        "X-Forwarded-Method: GET",
        "X-Forwarded-For: 6.6.6.6",
        "Forwarded: for=6.6.6.6",
        "Connection: keep-alive, x-hop, Authorization, Cookie",
        "X-Hop: 1",
        "Content-Length: 5",
        "X-User: root",
    ];
    let response = send(&mut service, "PUT /orders/1?q=%2F", &request).await;
    assert_eq!(response.status(), 503);
    let requests = script.requests.lock();
    let [asked] = &requests[..] else { panic!() };
    assert_eq!((asked.method().as_str(), asked.body().len()), ("GET", 0));
    assert_eq!(asked.uri(), "http://auth.example/verify?x=1");
    let mut headers: Vec<_> = asked
        .headers()
        .iter()
        .filter(|(name, _)| *name != "cdn-loop")
        .map(|(name, value)| format!("{name}: {}", value.to_str().unwrap()))
        .collect();
    headers.sort();
    assert_eq!(
        headers,
        [
            "authorization: Bearer x",
            "cookie: a=b",
            "x-forwarded-for: 192.0.2.1",
            "x-forwarded-host: shop.example",
            "x-forwarded-method: PUT",
            "x-forwarded-proto: http",
            "x-forwarded-uri: /orders/1?q=%2F",
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn forwarded_headers_are_believed_where_that_is_said() {
    let script = Script::new([answer(204, &[])]);
    let policy = FORWARD.replace(
        r#""Timeout":"2s""#,
        r#""TrustForwardHeader":true,"RequestHeaders":["Cookie"]"#,
    );
    let mut service = script.service(&policy, ROUTE);
    let headers = [
        "X-Forwarded-Uri: /a",
        "X-Forwarded-For: 192.0.2.7",
        "Cookie: a=b",
        "Accept: c",
    ];
    send(&mut service, "GET /b", &headers).await;
    let requests = script.requests.lock();
    let headers = requests[0].headers();
    assert_eq!(headers["x-forwarded-uri"], "/a");
    assert_eq!(headers["x-forwarded-for"], "192.0.2.7");
    assert_eq!(headers["x-forwarded-method"], "GET");
    assert!(headers.contains_key("cookie") && !headers.contains_key("accept"));
}

/// Each of the policies may be asked by a request of the others, but none by one of its own.
#[tokio::test(start_paused = true)]
async fn a_request_of_the_policy_itself_is_a_loop() {
    let script = Script::new([answer(204, &[])]);
    let other = FORWARD.replace(r#""ask""#, r#""other""#);
    let named = FORWARD.replace(r#""Timeout":"2s""#, r#""RequestHeaders":["Cookie"]"#);
    let other = other.replace(r#""Authorization":{"#, ",");
    let policies = format!("{}{other}", named.strip_suffix('}').unwrap());
    let route = |id: &str, policy: &str| {
        format!(
            r#""{id}":{{"ClusterId":"c","Match":{{"Path":"/{id}"}},"AuthorizationPolicy":"{policy}"}}"#
        )
    };
    let routes = format!("{},{}", route("first", "ask"), route("second", "other"));
    let mut service = script.service(&policies, &routes);
    let received = ["CDN-Loop: cdn.example; a=b", "Connection: cdn-loop, close"];
    assert_eq!(
        send(&mut service, "GET /first", &received).await.status(),
        503
    );
    let members = |number: usize| -> Vec<String> {
        let requests = script.requests.lock();
        let values = requests[number].headers().get_all("cdn-loop");
        let values = values.iter().map(|value| value.to_str().unwrap());
        values.map(str::to_owned).collect()
    };
    let first = members(0);
    assert_eq!((&*first[0], first.len()), ("cdn.example; a=b", 2));
    assert!(first[1].starts_with("policy-"), "{first:?}");

    let lines = first.iter().map(|value| format!("CDN-Loop: {value}"));
    let lines: Vec<_> = lines.collect();
    let lines: Vec<_> = lines.iter().map(String::as_str).collect();
    let one = format!("CDN-Loop: other , {};x=1", first[1]);
    for lines in [&lines[..], &[&one]] {
        let looped = send(&mut service, "GET /first", lines).await;
        assert_eq!((looped.status().as_u16(), script.count()), (508, 1));
    }
    // A service that is behind a route with another policy.
    let through = send(&mut service, "GET /second", &lines).await;
    assert_eq!((through.status().as_u16(), script.count()), (503, 2));
    assert_eq!(members(1)[..2], first);
    assert_eq!(members(1).len(), 3);
    let near = format!("CDN-Loop: {}0", first[1]);
    send(&mut service, "GET /first", &[&near]).await;
    assert_eq!(script.count(), 3);
}

#[tokio::test(start_paused = true)]
async fn only_2xx_lets_pass_and_what_fails_is_closed() {
    let location = ("location", "https://login.example/");
    let twice = [
        ("set-cookie", "a=1"),
        ("set-cookie", "b=2"),
        location,
        ("connection", "close"),
    ];
    let large = Scripted::Answer(401, Vec::new(), "x".repeat(65 * 1024));
    for (scripted, status, cookies, body) in [
        (
            answer(401, &[("www-authenticate", "Bearer")]),
            401,
            0,
            "text",
        ),
        (answer(302, &twice), 302, 2, "text"),
        (answer(404, &[]), 404, 0, "text"),
        (
            answer(500, &[]),
            503,
            0,
            "Authorization is not available.\n",
        ),
        (
            answer(101, &[]),
            503,
            0,
            "Authorization is not available.\n",
        ),
        (
            Scripted::Silence,
            503,
            0,
            "Authorization is not available.\n",
        ),
        (
            Scripted::Broken,
            503,
            0,
            "Authorization is not available.\n",
        ),
        (large, 503, 0, "Authorization is not available.\n"),
    ] {
        let script = Script::new([scripted]);
        let mut service = script.service(FORWARD, ROUTE);
        let begin = tokio::time::Instant::now();
        let response = send(&mut service, "GET /a", &[]).await;
        assert!(begin.elapsed() <= Duration::from_secs(2));
        assert_eq!(response.status(), status);
        let headers = response.headers();
        assert_eq!(headers.get_all("set-cookie").iter().count(), cookies);
        assert!(!headers.contains_key("connection"));
        assert_eq!(headers.contains_key("location"), status == 302);
        assert_eq!(
            headers.contains_key("www-authenticate"),
            status == 401 && cookies == 0 && headers.contains_key("www-authenticate")
        );
        let read = http_body_util::BodyExt::collect(response.into_body()).await;
        assert_eq!(read.unwrap().to_bytes(), body);
    }
    // A kept connection that the service has just closed is no answer.
    let script = Script::new([Scripted::Broken, answer(401, &[])]);
    let mut service = script.service(FORWARD, ROUTE);
    assert_eq!(send(&mut service, "GET /a", &[]).await.status(), 401);
}

/// A dead service is not the client's fault, with and without layers.
#[tokio::test(start_paused = true)]
async fn a_service_that_is_away_is_named_with_its_error() {
    for layers in ["", r#","Layers":["pass"]"#] {
        let script = Script::new([Scripted::Broken]);
        let policies = Arc::new(Policies::new().with_transport(Arc::new(script.clone())));
        let pass = tower_layer::layer_fn(|rest: proxy_runtime::layer::RouteService| rest);
        let builder = Proxy::builder().policies(Arc::clone(&policies) as _);
        let builder = builder.layer("pass", pass);
        let route = ROUTE.replace(
            r#""ClusterId""#,
            &format!(r#""Timeout":"5s"{layers},"ClusterId""#),
        );
        let snapshot = snapshot(&builder, FORWARD, &route);
        let (proxy, _driver) = builder.snapshot(snapshot).build().unwrap();
        let mut service = proxy.service();
        let caused = |cause: Cause| {
            let causes = proxy.collector().to_text();
            let (name, side) = (cause.as_str(), cause.side().as_str());
            causes.contains(&format!("cause=\"{name}\",side=\"{side}\"}} 1"))
        };
        assert_eq!(send(&mut service, "GET /a", &[]).await.status(), 503);
        assert!(caused(Cause::AuthorizationUnavailable), "{layers}");
        assert!(!caused(Cause::RejectedByPolicy), "{layers}");
        let failing = policies.failing();
        assert_eq!(&*failing[0].name, "ask");
        let detail = "authorization service http://auth.example/verify: it broke";
        assert_eq!(failing[0].detail, detail);
        script.set(answer(403, &[]));
        assert_eq!(send(&mut service, "GET /a", &[]).await.status(), 403);
        assert!(caused(Cause::RejectedByPolicy), "{layers}");
        assert_eq!(policies.failing(), []);
    }
}

#[tokio::test(start_paused = true)]
async fn a_preflight_asks_nobody_and_a_reply_of_the_route_asks_first() {
    let script = Script::new([answer(401, &[])]);
    let policies = format!(r#"{FORWARD},"Cors":{{"web":{{"Origins":["https://a.example"]}}}}"#);
    let routes = r#"
        "r":{"ClusterId":"c","Match":{"Path":"/r"},"AuthorizationPolicy":"ask","CorsPolicy":"web"},
        "away":{"Respond":{"Body":"secret"},"Match":{"Path":"/away"},"AuthorizationPolicy":"ask"},
        "near":{"Respond":{"Body":"secret"},"Match":{"Path":"/near"},"AuthorizationPolicy":"near"}"#;
    let policies = policies.replacen(
        r#""Authorization":{"#,
        r#""Authorization":{"near":{"Networks":{"Deny":["192.0.2.0/24"]}},"#,
        1,
    );
    let mut service = script.service(&policies, routes);
    let origin = [
        "Origin: https://a.example",
        "Access-Control-Request-Method: PUT",
    ];
    let response = send(&mut service, "OPTIONS /r", &origin).await;
    assert_eq!((response.status().as_u16(), script.count()), (204, 0));
    let response = send(&mut service, "GET /r", &origin[..1]).await;
    assert_eq!((response.status().as_u16(), script.count()), (401, 1));
    assert_eq!(
        response.headers()["access-control-allow-origin"],
        "https://a.example"
    );
    assert_eq!(send(&mut service, "GET /away", &[]).await.status(), 401);
    assert_eq!(send(&mut service, "GET /near", &[]).await.status(), 403);
}

#[test]
fn without_a_client_of_http_such_policies_are_rejected() {
    let builder = Proxy::builder().policies(Arc::new(Policies::new()));
    let snapshot = snapshot(&builder, FORWARD, ROUTE);
    let error = builder.snapshot(snapshot).build().unwrap_err();
    assert!(format!("{error:?}").contains("client of HTTP"), "{error:?}");
}
