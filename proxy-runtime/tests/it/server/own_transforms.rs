//! Transforms of the program that wait for work of their own, and those that change trailers: on every way through the
//! proxy, for clients and destinations of both versions of HTTP.

use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use http::{HeaderMap, HeaderValue, StatusCode};
use proxy_runtime::filter::{Filter, FilterContext, Flow, Reply, RequestEdit, ResponseEdit};
use proxy_runtime::layer::RouteService;
use proxy_runtime::proxy_model::Snapshot;
use proxy_runtime::proxy_model::config::{ProxyConfig, TransformConfig};
use proxy_runtime::{Proxy, ProxyBuilder};
use serde_json::{Value, json};
use testkit::raw::{RawClient, RawOrigin, Recording};
use testkit::time::{eventually, guarded};
use tower_layer::layer_fn;

use crate::server::waits::{Way, ways};
use crate::server::ways::{OK, TRAILED, compare, compare_forwarded};

/// A service that transforms ask: its answer is theirs.
#[derive(Clone, Default)]
pub(super) struct Asked {
    /// All calls.
    pub(super) calls: Arc<AtomicUsize>,
    /// Calls that wait for ever.
    pub(super) waiting: Arc<AtomicUsize>,
}

/// Counts itself while it is there.
pub(super) struct Counted(Arc<AtomicUsize>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}

impl Asked {
    async fn answer(self, word: String) -> Result<String, Box<dyn Error + Send + Sync>> {
        self.calls.fetch_add(1, Relaxed);
        tokio::task::yield_now().await;
        match &*word {
            "fails" => Err("the service is away".into()),
            "panics" => panic!("as the test wants"),
            "never" => {
                self.waiting.fetch_add(1, Relaxed);
                let _waits = Counted(self.waiting);
                std::future::pending().await
            }
            _ => Ok(word),
        }
    }
}

/// `{ "Token": word }` asks with the request.
pub(super) struct Token(String, Asked);

impl Filter for Token {
    fn on_request(&self, head: &mut RequestEdit<'_>, _: &FilterContext<'_>) -> Flow {
        let (seen, answer) = (
            head.path().to_owned(),
            self.1.clone().answer(self.0.clone()),
        );
        Flow::wait(async move {
            let token = answer.await?;
            Ok(move |head: &mut RequestEdit<'_>| {
                assert_ne!(token, "panics late", "as the test wants");
                assert_eq!(head.path(), seen);
                head.append("x-token", &*token).unwrap();
                match &*token {
                    "replies" => Reply::new(StatusCode::UNAUTHORIZED)
                        .with_body("no\n")
                        .into(),
                    "again" => Flow::wait(async {
                        Ok(|head: &mut RequestEdit<'_>| {
                            head.append("x-token", "once more").unwrap();
                            Flow::Continue
                        })
                    }),
                    _ => Flow::Continue,
                }
            })
        })
    }
}

/// `{ "Sign": word }` asks with the response.
pub(super) struct Sign(String, Asked);

impl Filter for Sign {
    fn on_request(&self, _: &mut RequestEdit<'_>, _: &FilterContext<'_>) -> Flow {
        Flow::Continue
    }

    fn on_response(&self, head: &mut ResponseEdit<'_>, _: &FilterContext<'_>) {
        let answer = self.1.clone().answer(self.0.clone());
        head.wait(async move {
            let word = answer.await?;
            Ok(move |head: &mut ResponseEdit<'_>| {
                assert_ne!(word, "panics late", "as the test wants");
                let status = head.status();
                head.append("x-signed", format!("{word} {}", status.as_u16()))
                    .unwrap();
                head.remove("server").unwrap();
                if word == "again" {
                    head.wait(async {
                        Ok(|head: &mut ResponseEdit<'_>| {
                            head.append("x-signed", "once more").unwrap();
                        })
                    });
                }
            })
        });
    }
}

/// `{ "Sum": word }` changes trailers.
pub(super) struct Sum(String);

impl Filter for Sum {
    fn on_request(&self, _: &mut RequestEdit<'_>, _: &FilterContext<'_>) -> Flow {
        Flow::Continue
    }

    fn on_response(&self, head: &mut ResponseEdit<'_>, _: &FilterContext<'_>) {
        let word = self.0.clone();
        head.change_trailers(move |trailers: &mut HeaderMap| {
            assert_ne!(word, "panics", "as the test wants");
            let sum = trailers
                .get("x-sum")
                .map_or(0, |sum| sum.to_str().unwrap().parse().unwrap());
            trailers.insert("x-sum", HeaderValue::from(sum + 1));
            trailers.append("x-by", HeaderValue::from_str(&word).unwrap());
            // Neither is for trailers.
            trailers.insert("content-length", HeaderValue::from(7));
            trailers.insert("authorization", HeaderValue::from(7));
        });
    }
}

/// Adds the transforms, which ask this service.
pub(super) fn with(builder: ProxyBuilder, asked: &Asked) -> ProxyBuilder {
    let word = |entry: &TransformConfig, key: &str| entry.get(key).cloned().ok_or("no word");
    let (tokens, signatures) = (asked.clone(), asked.clone());
    builder
        .transform("Token", move |entry| {
            let word = word(entry, "Token")?;
            Ok(Arc::new(Token(word, tokens.clone())) as Arc<dyn Filter>)
        })
        .transform("Sign", move |entry| {
            let word = word(entry, "Sign")?;
            Ok(Arc::new(Sign(word, signatures.clone())) as Arc<dyn Filter>)
        })
        .transform("Sum", move |entry| {
            Ok(Arc::new(Sum(word(entry, "Sum")?)) as Arc<dyn Filter>)
        })
}

pub(crate) fn registered(builder: ProxyBuilder) -> ProxyBuilder {
    with(builder, &Asked::default())
}

pub(super) const GET: &str =
    "GET /api/items/7?q=1 HTTP/1.1\r\nHost: shop.example\r\nX-Old: 1\r\n\r\n";
pub(super) const POST: &str = "POST /p HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabc";
pub(super) const CHUNKS: &str =
    "POST /p HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n";
pub(super) const ASKING: &str =
    "GET / HTTP/1.1\r\nHost: h\r\nTE: trailers\r\nConnection: te\r\n\r\n";

/// Lists of transforms that wait, and what requests and responses have of them.
pub(crate) fn waiting() -> [(Value, &'static [&'static str]); 6] {
    [
        (json!([{ "Token": "t" }]), &["x-token: t"]),
        (
            json!([{ "Token": "again" }, { "Token": "t" }]),
            &["x-token: again", "x-token: once more", "x-token: t"],
        ),
        (json!([{ "Sign": "s" }]), &["x-signed: s 200"]),
        (
            json!([{ "Sign": "s" }, { "Sign": "again" }]),
            &[
                "x-signed: again 200",
                "x-signed: once more",
                "x-signed: s 200",
            ],
        ),
        (
            json!([{ "Token": "t" }, { "Sign": "s" }, { "ResponseHeader": "X-Signed", "Append": "built-in" }]),
            &["x-token: t", "x-signed: s 200", "X-Signed: built-in"],
        ),
        (
            json!([{ "Token": "t" }, { "RequestHeaderRemove": "x-token" }, { "PathPrefix": "/x" }]),
            &[" /x/"],
        ),
    ]
}

#[tokio::test]
async fn those_that_wait_change_heads() {
    for (transforms, told) in waiting() {
        let route = json!({ "Filters": ["a", "elsewhere", "b"], "Transforms": transforms });
        for request in [GET, POST, CHUNKS] {
            compare_forwarded(&format!("{transforms} {request}"), &route, "", request, OK).await;
        }
        let route = json!({ "Transforms": transforms });
        for (request, answer) in [(GET, OK), (POST, OK), (CHUNKS, OK), (ASKING, TRAILED[0])] {
            let name = format!("{transforms} {request}");
            compare_forwarded(&name, &route, "", request, answer).await;
            let seen = compare(&name, &route, "", request, answer).await;
            for told in told {
                let (seen, told) = (seen.to_lowercase(), told.to_lowercase());
                assert!(seen.contains(&told), "{name}: {told} is not in {seen}");
            }
            let removes = transforms.to_string().contains("RequestHeaderRemove");
            assert!(!removes || !seen.contains("x-token"), "{seen}");
        }
    }
}

/// Transforms that fail, and the status that a client gets.
pub(crate) const FAILING: [(&str, &str, &str); 7] = [
    ("Token", "fails", "500"),
    ("Token", "panics", "500"),
    ("Token", "panics late", "500"),
    ("Token", "replies", "401"),
    ("Sign", "fails", "500"),
    ("Sign", "panics", "500"),
    ("Sign", "panics late", "500"),
];

/// The responses to one request on every way, with what the destination got, in lower case.
pub(super) async fn once(
    route: &Value,
    request: &str,
    answer: &'static str,
) -> Vec<(String, String)> {
    let mut each = Vec::new();
    for Way {
        way,
        serve,
        route: of_way,
    } in ways()
    {
        let mut route = route.clone();
        if let Some(layers) = of_way.get("Layers") {
            route["Layers"] = layers.clone();
        }
        let origin = RawOrigin::answering(answer);
        let server = serve(&proxy(&Asked::default(), &origin.url(), &route));
        let mut client = RawClient::connect(server.local_addrs()[0]).await.unwrap();
        let request = request.replacen("\r\n", "\r\nConnection: close\r\n", 1);
        client.write_all(&request).await.unwrap();
        let response = guarded(way, client.read_to_end()).await.unwrap();
        let sent: String = origin.recordings().iter().map(Recording::text).collect();
        let response = String::from_utf8(response).unwrap();
        each.push((
            format!("{way}: {response}").to_lowercase(),
            sent.to_lowercase(),
        ));
    }
    each
}

#[tokio::test]
async fn a_failure_is_the_response() {
    for (key, word, status) in FAILING {
        let transforms =
            json!([{ "Sign": "outer" }, { key: word }, { "Token": "t" }, { "Sign": "s" }]);
        let route = json!({ "Transforms": transforms });
        compare(&format!("{key} {word}"), &route, "", GET, OK).await;
        for request in [GET, POST, CHUNKS] {
            let name = format!("{key} {word} {request}");
            for (response, sent) in once(&route, request, OK).await {
                let has = |text: &str| response.contains(text);
                assert!(has(&format!("http/1.1 {status} ")), "{name}: {response}");
                assert_eq!(sent.contains("x-token: t"), key == "Sign", "{name}: {sent}");
                // Those before see the response in place of the destination's, unless one failed with that.
                let is_signed = has(&format!("x-signed: outer {status}"));
                assert_eq!(is_signed, key == "Token", "{name}: {response}");
                let by_later = key == "Sign" && has("x-signed: s ");
                assert!(!by_later, "{name}: {response}");
            }
        }
    }
}

/// Responses of the proxy itself pass the transforms, too, and a body over its limit is known before or after them.
#[tokio::test]
async fn responses_of_the_proxy_wait_as_well() {
    let transforms = |word: &str| json!([{ "Token": "t" }, { "Sign": word }]);
    for (name, limit, request, answer, status) in [
        (
            "no response",
            None,
            GET,
            "SSH-2.0-OpenSSH_9.2\r\n\r\n",
            "502",
        ),
        (
            "a broken body",
            None,
            GET,
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n",
            "502",
        ),
        ("a body over its limit", Some(2), CHUNKS, OK, "413"),
    ] {
        for (word, status) in [("s", status), ("fails", "500"), ("panics", "500")] {
            let mut route = json!({ "Transforms": transforms(word) });
            if let Some(limit) = limit {
                route["MaxRequestBodySize"] = json!(limit);
            }
            for (response, _) in once(&route, request, answer).await {
                let has = |text: &str| response.contains(text);
                assert!(has(&format!("http/1.1 {status} ")), "{name}: {response}");
                let is_signed = has(&format!("x-signed: s {status}"));
                assert_eq!(is_signed, word == "s", "{name}: {response}");
            }
        }
    }
    // A declared length is checked before.
    let route = json!({ "Transforms": transforms("s"), "MaxRequestBodySize": 2 });
    for (response, sent) in once(&route, POST, OK).await {
        assert!(response.contains("http/1.1 413 "), "{response}");
        assert_eq!(sent, "");
    }
}

/// Routes that change trailers by code, and by transforms after it.
pub(crate) fn summed_routes() -> Vec<Value> {
    let transforms = [
        json!([{ "Sum": "a" }]),
        json!([{ "Sum": "a" }, { "Sum": "b" }]),
        json!([{ "Sign": "s" }, { "Sum": "a" }, { "ResponseTrailer": "X-By", "Append": "built-in" }]),
        json!([{ "Sum": "a" }, { "ResponseTrailerRemove": "X-Sum" }]),
        json!([{ "Sum": "a" }, { "ResponseTrailersCopy": "false" }]),
    ];
    let transforms = transforms.into_iter();
    let route = |transforms| json!({ "Transforms": transforms });
    transforms.map(route).collect()
}

#[tokio::test]
async fn trailers_are_changed_every_way() {
    let plain = "GET / HTTP/1.1\r\nHost: h\r\n\r\n";
    let head = "HEAD / HTTP/1.1\r\nHost: h\r\nTE: trailers\r\nConnection: te\r\n\r\n";
    for route in summed_routes() {
        for answer in TRAILED {
            let name = format!("{route} {answer}");
            compare_forwarded(&name, &route, "", ASKING, answer).await;
            compare_forwarded(&name, &route, "", plain, answer).await;
        }
        let answer = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n";
        compare_forwarded("HEAD", &route, "", head, answer).await;
    }
    let routes = summed_routes();
    for (route, answer, told, not) in [
        (
            &routes[0],
            TRAILED[0],
            &["x-sum: 8", "x-other: 2", "x-by: a"][..],
            "x-sum: 7",
        ),
        (
            &routes[0],
            TRAILED[1],
            &["x-sum: 1", "x-by: a"],
            "authorization",
        ),
        // The last one sees the response first.
        (
            &routes[1],
            TRAILED[0],
            &["x-sum: 9", "x-by: a", "x-by: b"],
            "content-length: 7",
        ),
        (
            &routes[2],
            TRAILED[0],
            &["x-signed: s 200", "x-by: a", "x-by: built-in"],
            "x-sum: 7",
        ),
        (&routes[3], TRAILED[0], &["x-by: a"], "x-sum"),
        (&routes[4], TRAILED[0], &[], "x-by"),
        // Without chunks there is no place for them.
        (&routes[0], TRAILED[3], &[], "x-sum"),
    ] {
        let seen = compare("told", route, "", ASKING, answer).await;
        let response = seen.split("response: ").nth(1).unwrap().to_lowercase();
        for told in told {
            assert!(response.contains(told), "{route} {answer}: {response}");
        }
        assert!(!response.contains(not), "{route} {answer}: {response}");
    }
}

/// A proxy with a route to a destination.
pub(super) fn proxy(asked: &Asked, destination: &str, route: &Value) -> Proxy {
    let mut route = route.clone();
    route["Match"] = json!({ "Path": "/{**rest}" });
    route["ClusterId"] = json!("c1");
    let config = json!({
        "Routes": { "r1": route },
        "Clusters": { "c1": { "Destinations": { "d1": { "Address": destination } } } },
    });
    let config = ProxyConfig::from_json(&config.to_string()).unwrap();
    let builder = with(Proxy::builder(), asked).layer("pass", layer_fn(|rest: RouteService| rest));
    let (snapshot, _) = Snapshot::compile(config, &builder.compile_options()).unwrap();
    let (proxy, driver) = builder.snapshot(Arc::new(snapshot)).build().unwrap();
    tokio::spawn(driver);
    proxy
}

/// The route of a way, with these transforms.
pub(super) fn transformed(way: &Value, transforms: Value) -> Value {
    let mut route = way.clone();
    route["Transforms"] = transforms;
    route
}

#[tokio::test]
async fn a_panic_at_the_trailers_breaks_the_response_off() {
    for Way { way, serve, route } in ways() {
        for answer in [TRAILED[0], TRAILED[1]] {
            let origin = RawOrigin::answering(answer);
            let route = transformed(&route, json!([{ "Sum": "panics" }]));
            let proxy = proxy(&Asked::default(), &origin.url(), &route);
            let server = serve(&proxy);
            let mut client = RawClient::connect(server.local_addrs()[0]).await.unwrap();
            let request = ASKING.replace("Connection: te", "Connection: te, close");
            client.write_all(request).await.unwrap();
            let text = guarded(way, client.read_to_end()).await.unwrap_or_default();
            let text = String::from_utf8(text).unwrap();
            // The empty line that ends trailers is missing, or nothing was sent yet.
            let is_cut = text.starts_with("HTTP/1.1 200 ") && !text.ends_with("\r\n\r\n");
            assert!(is_cut || text.starts_with("HTTP/1.1 500 "), "{way}: {text}");
            eventually(format!("{way}: it is counted"), async || {
                !proxy.clusters()[0].errors.is_empty()
            })
            .await;
            let errors = &proxy.clusters()[0].errors;
            let expected = [("Extension", 1)].into();
            assert_eq!(*errors, expected, "{way}");
        }
    }
}

/// A request, or a response, that waits for ever.
pub(super) fn endless() -> [Value; 2] {
    [json!([{ "Token": "never" }]), json!([{ "Sign": "never" }])]
}

#[tokio::test]
async fn a_client_that_leaves_cancels_the_work() {
    for Way { way, serve, route } in ways() {
        for transforms in endless() {
            let origin = RawOrigin::answering(OK);
            let asked = Asked::default();
            let proxy = proxy(
                &asked,
                &origin.url(),
                &transformed(&route, transforms.clone()),
            );
            let server = serve(&proxy);
            for request in [GET, POST, CHUNKS] {
                let mut client = RawClient::connect(server.local_addrs()[0]).await.unwrap();
                client.write_all(request).await.unwrap();
                let label = format!("{way}, {transforms}, {request}: it waits");
                eventually(&label, async || asked.waiting.load(Relaxed) == 1).await;
                client.close();
                let label = format!("{way}, {transforms}, {request}: it is cancelled");
                eventually(&label, async || asked.waiting.load(Relaxed) == 0).await;
            }
            // The same with streams.
            #[cfg(feature = "http2")]
            for has_body in [false, true] {
                use crate::server::streams::Client;
                let client = Client::connect(server.local_addrs()[0]).await;
                let mut sender = client.sender.clone().ready().await.unwrap();
                let request = http::Request::post("http://h/").body(()).unwrap();
                let (response, mut stream) = sender.send_request(request, !has_body).unwrap();
                if has_body {
                    stream.send_data("abc".into(), true).unwrap();
                }
                let label = format!("{way}, {transforms}: a stream waits");
                eventually(&label, async || asked.waiting.load(Relaxed) == 1).await;
                stream.send_reset(h2::Reason::CANCEL);
                let label = format!("{way}, {transforms}: its work is cancelled");
                eventually(&label, async || asked.waiting.load(Relaxed) == 0).await;
                drop(response);
            }
            eventually("all is over", async || {
                let status = &proxy.clusters()[0].destinations[0];
                status.in_flight == 0
            })
            .await;
        }
    }
}
