//! Tower layers around a route.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{HeaderValue, Request, Response, StatusCode};
use http_body::Frame;
use http_body_util::BodyExt;
use proxy_runtime::filter::{Filter, FilterContext, Flow, RequestEdit};
use proxy_runtime::forward::ExchangeInfo;
use proxy_runtime::forward::RouteContext;
use proxy_runtime::layer::{ProxyRequestBody, RouteService};
use proxy_runtime::{Cause, ForwardError, Proxy, ProxyBody, ProxyBuilder};
use serde_json::json;
use testkit::body;
use testkit::client::{Connection, Message, WebSocket, websocket};
use testkit::origin::{Echo, Origin};
use tower_layer::{Layer, layer_fn};
use tower_service::Service;

use crate::forward::front::{Front, config_with_route, h2c};

type BoxError = Box<dyn std::error::Error + Send + Sync>;
type Answer<B> = Pin<Box<dyn Future<Output = Result<Response<B>, BoxError>> + Send>>;

/// A function around the rest of a route.
#[derive(Clone)]
struct Around<F> {
    rest: RouteService,
    function: F,
}

fn around<F, A, B>(function: F) -> impl Layer<RouteService, Service = Around<F>> + Send + Sync
where
    F: Fn(Request<ProxyRequestBody>, RouteService) -> A + Clone + Send + Sync + 'static,
    A: Future<Output = Result<Response<B>, BoxError>> + Send + 'static,
{
    layer_fn(move |rest| Around {
        rest,
        function: function.clone(),
    })
}

impl<F, A, B> Service<Request<ProxyRequestBody>> for Around<F>
where
    F: Fn(Request<ProxyRequestBody>, RouteService) -> A,
    A: Future<Output = Result<Response<B>, BoxError>> + Send + 'static,
{
    type Response = Response<B>;
    type Error = BoxError;
    type Future = Answer<B>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Service::<Request<ProxyRequestBody>>::poll_ready(&mut self.rest, cx)
    }

    fn call(&mut self, request: Request<ProxyRequestBody>) -> Answer<B> {
        Box::pin((self.function)(request, self.rest.clone()))
    }
}

/// Marks requests and responses.
async fn mark(
    name: &'static str,
    mut request: Request<ProxyRequestBody>,
    mut rest: RouteService,
) -> Result<Response<ProxyBody>, BoxError> {
    let name = HeaderValue::from_static(name);
    request.headers_mut().append("x-mark", name.clone());
    let mut response = rest.call(request).await?;
    response.headers_mut().append("x-mark", name);
    Ok(response)
}

/// A layer may assign another cluster than that of the route, to requests of either path; the rest of the route holds.
#[tokio::test]
async fn a_layer_assigns_another_cluster() {
    let [stable, beta] = ["stable", "beta"].map(Origin::named);
    for cluster in [json!({}), h2c()] {
        let mut config = config_with_route(
            &[&stable.url()],
            &json!({ "Layers": ["assign"], "Transforms": [{ "ResponseHeader": "x-route", "Set": "all" }] }),
        );
        config["Clusters"]["beta"] = cluster.clone();
        config["Clusters"]["beta"]["Destinations"] = json!({ "d": { "Address": beta.url() } });
        let assign = around(
            |mut request: Request<ProxyRequestBody>, mut rest: RouteService| async move {
                let wanted = request.headers().get("x-cluster").cloned();
                let context = request.extensions_mut().get_mut::<RouteContext>().unwrap();
                let is_known =
                    wanted.map(|wanted| context.assign_cluster(&wanted.to_str().unwrap().into()));
                let mut response: Response<ProxyBody> = rest.call(request).await?;
                let is_known = HeaderValue::from_str(&format!("{is_known:?}"))?;
                response.headers_mut().insert("x-known", is_known);
                Ok(response)
            },
        );
        let front = Front::build(
            &config,
            Origin::builder(),
            Proxy::builder().layer("assign", assign),
        );
        for mut client in [front.http1().await, front.http2().await] {
            for (wanted, name, known) in [
                (None, "stable", "None"),
                (Some("BETA"), "beta", "Some(true)"),
                (Some("gamma"), "stable", "Some(false)"),
            ] {
                let mut request = client.request("GET", "/");
                if let Some(wanted) = wanted {
                    request = request.header("x-cluster", wanted);
                }
                let answer = client
                    .send(request.body(body::empty()).unwrap())
                    .await
                    .unwrap();
                assert_eq!(
                    (answer.text(), answer.status.as_u16()),
                    (name.to_owned(), 200)
                );
                assert_eq!(answer.headers["x-known"], known);
                assert_eq!(answer.headers["x-route"], "all");
            }
        }
        front.settled().await;
        let requests = front
            .proxy
            .clusters()
            .iter()
            .map(|it| (it.id.to_string(), it.requests))
            .collect::<Vec<_>>();
        assert_eq!(requests, [("beta".to_owned(), 2), ("c".to_owned(), 4)]);
    }
}

fn marks() -> ProxyBuilder {
    Proxy::builder()
        .layer(
            "outer",
            around(|request, rest| mark("outer", request, rest)),
        )
        .layer(
            "inner",
            around(|request, rest| mark("inner", request, rest)),
        )
}

fn front(builder: ProxyBuilder, origin: &Origin, route: &serde_json::Value) -> Front {
    let config = config_with_route(&[&origin.url()], route);
    Front::build(&config, Origin::builder(), builder)
}

async fn post(
    client: &mut Connection,
    path: &str,
    content: &'static str,
) -> testkit::client::Answer {
    let request = client.request("POST", path).body(body::full(content));
    client.send(request.unwrap()).await.unwrap()
}

#[tokio::test]
async fn the_first_of_the_list_is_the_outermost() {
    let origin = Origin::echo();
    let front = front(marks(), &origin, &json!({ "Layers": ["outer", "inner"] }));
    for mut client in [front.http1().await, front.http2().await] {
        for content in ["", "content"] {
            let answer = match content {
                "" => client.get("/").await.unwrap(),
                content => post(&mut client, "/", content).await,
            };
            let echo: Echo = answer.json();
            assert_eq!(echo.header("x-mark"), ["outer", "inner"]);
            assert_eq!(echo.body_text.as_deref(), Some(content));
            let marks: Vec<_> = answer.headers.get_all("x-mark").iter().collect();
            assert_eq!(marks, ["inner", "outer"]);
        }
    }
    front.settled().await;
    assert_eq!(front.proxy.routes()[0].requests, 4);
    let destination = front.destination(0);
    assert_eq!(
        (destination.requests, destination.responses.success),
        (4, 4)
    );
    assert!(destination.errors.is_empty());
}

/// Path and host are forwarded as changed by a layer; the route stays.
#[tokio::test]
async fn requests_are_sent_on_as_changed() {
    let origin = Origin::echo();
    let builder = Proxy::builder().layer(
        "elsewhere",
        around(|mut request: Request<ProxyRequestBody>, mut rest| {
            let context = request.extensions().get::<RouteContext>().unwrap();
            let path = context.route_metadata("Path").unwrap().parse();
            *request.uri_mut() = path.unwrap();
            let host = HeaderValue::from_static("elsewhere.example");
            request.headers_mut().insert("host", host);
            async move { rest.call(request).await }
        }),
    );
    let route = json!({
        "Layers": ["Elsewhere"], "Metadata": { "Path": "/else/where?a=b" },
        "Match": { "Path": "/here" }, "Transforms": [{ "RequestHeaderOriginalHost": "true" }],
    });
    let front = front(builder, &origin, &route);
    for mut client in [front.http1().await, front.http2().await] {
        let echo: Echo = client.get("/here").await.unwrap().json();
        assert_eq!(echo.path_and_query(), "/else/where?a=b");
        assert_eq!(echo.header("host"), ["elsewhere.example"]);
    }
}

/// An error whose cause determines the response.
#[derive(Debug)]
struct Shed(ForwardError);

impl std::fmt::Display for Shed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("too many requests wait")
    }
}

impl std::error::Error for Shed {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.0)
    }
}

/// Layers that respond, fail, or drop extensions of the request.
#[tokio::test]
async fn layers_answer_and_fail() {
    let origin = Origin::echo();
    let builder = Proxy::builder().layer(
        "scripted",
        around(|request: Request<ProxyRequestBody>, mut rest| async move {
            match request.uri().path() {
                "/answer" => Ok(Response::new(ProxyBody::text("from the layer"))),
                "/fail" => Err("as the path says".into()),
                "/busy" => {
                    let cause = Cause::NoDestination;
                    let error = ForwardError::new(cause, StatusCode::SERVICE_UNAVAILABLE);
                    Err(Shed(error).into())
                }
                "/lose" => rest.call(Request::new(request.into_body())).await,
                _ => rest.call(request).await,
            }
        }),
    );
    let front = front(builder, &origin, &json!({ "Layers": ["scripted"] }));
    let mut client = front.http1().await;
    for (path, status, text) in [
        ("/answer", 200, "from the layer"),
        ("/fail", 500, "500 Internal Server Error\n"),
        ("/busy", 503, "503 Service Unavailable\n"),
        ("/lose", 500, "500 Internal Server Error\n"),
    ] {
        let answer = client.get(path).await.unwrap();
        assert_eq!(
            (answer.status.as_u16(), &*answer.text()),
            (status, text),
            "{path}"
        );
    }
    assert_eq!(client.get("/").await.unwrap().status, 200);
    front.settled().await;
    assert_eq!(origin.traffic().requests(), 1);
    assert_eq!(front.proxy.routes()[0].requests, 5);
    let errors = front.proxy.overview().errors;
    assert_eq!(errors.get("Extension"), Some(&1));
    assert_eq!(errors.get("NoAvailableDestinations"), Some(&1));
}

/// A filter inside layers: its panic is counted once, with the attempt.
#[tokio::test]
async fn errors_of_an_attempt_are_counted_once() {
    struct Panics;
    impl Filter for Panics {
        fn on_request(&self, _: &mut RequestEdit<'_>, _: &FilterContext<'_>) -> Flow {
            panic!("as asked")
        }
    }
    let origin = Origin::echo();
    let builder = marks().filter("panics", Panics);
    let route = json!({ "Layers": ["outer"], "Filters": ["panics"] });
    let front = front(builder, &origin, &route);
    let answer = front.http1().await.get("/").await.unwrap();
    assert_eq!(answer.status, 500);
    assert_eq!(answer.header("x-mark"), Some("outer"));
    front.settled().await;
    assert_eq!(front.errors("Extension"), 1);
    assert_eq!(front.proxy.overview().errors.get("Extension"), None);
}

/// A layer must not open a closed route, nor see requests that are rejected earlier.
#[tokio::test]
async fn what_is_rejected_asks_no_layer() {
    let origin = Origin::echo();
    let builder = || {
        Proxy::builder().layer(
            "open",
            around(|_, _| async { Ok(Response::new(ProxyBody::text("open"))) }),
        )
    };
    let closed = json!({ "Layers": ["open"], "AuthorizationPolicy": "Default" });
    let closed = front(builder(), &origin, &closed);
    assert_eq!(closed.http1().await.get("/").await.unwrap().status, 500);
    let small = json!({ "Layers": ["open"], "MaxRequestBodySize": 3 });
    let small = front(builder(), &origin, &small);
    let mut client = small.http1().await;
    assert_eq!(post(&mut client, "/", "1234").await.status, 413);
    assert_eq!(client.get("/").await.unwrap().text(), "open");
    let strict = json!({ "Layers": ["open"], "StrictPaths": true });
    let strict = front(builder(), &origin, &strict);
    let mut client = strict.http1().await;
    for path in ["/a//b", "/a;b", "/a%2fb"] {
        assert_eq!(client.get(path).await.unwrap().status, 400, "{path}");
        assert_eq!(post(&mut client, path, "1").await.status, 400, "{path}");
    }
    assert_eq!(client.get("/a/b").await.unwrap().text(), "open");
    assert_eq!(strict.errors("RequestRejected"), 0, "of no cluster");
    let errors = strict.proxy.overview().errors;
    assert_eq!(errors.get("RequestRejected"), Some(&6));
}

/// Retries while the origin is busy.
async fn again(
    request: Request<ProxyRequestBody>,
    mut rest: RouteService,
) -> Result<Response<ProxyBody>, BoxError> {
    let (parts, body) = request.into_parts();
    let content = ProxyRequestBody::from(body.collect().await?.to_bytes());
    let mut left = 3;
    loop {
        left -= 1;
        let body = content.try_clone().expect("it is in memory");
        let response = rest.call(Request::from_parts(parts.clone(), body)).await?;
        if left == 0 || response.status() != StatusCode::SERVICE_UNAVAILABLE {
            return Ok(response);
        }
    }
}

#[tokio::test]
async fn a_layer_may_ask_again() {
    let busy = Arc::new(AtomicUsize::new(0));
    let tries = Arc::clone(&busy);
    let origin = Origin::start(move |request: Request<testkit::origin::Incoming>| {
        let is_busy = tries.fetch_add(1, Ordering::Relaxed) % 3 < 2;
        async move {
            let content = request.into_body().collect().await.unwrap().to_bytes();
            let mut response = Response::new(body::full(content));
            if is_busy {
                *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
            }
            response
        }
    });
    let builder = Proxy::builder().layer("again", around(again));
    let route = json!({ "Layers": ["again"], "MaxRequestBodySize": 10 });
    let front = front(builder, &origin, &route);
    for mut client in [front.http1().await, front.http2().await] {
        let answer = post(&mut client, "/", "content").await;
        assert_eq!((answer.status.as_u16(), &*answer.text()), (200, "content"));
    }
    front.settled().await;
    assert_eq!(busy.load(Ordering::Relaxed), 6);
    assert_eq!(front.proxy.routes()[0].requests, 2, "of clients");
    assert_eq!(front.destination(0).requests, 6);
    assert_eq!(front.destination(0).responses.server_error, 4);

    // The limit of the route applies to collected bodies, with and without a declared length.
    let mut client = front.http1().await;
    let pieces = ["1234"; 3].map(|piece| Ok(body::data(piece)));
    let request = client.request("POST", "/").body(body::frames(pieces));
    let answer = client.send(request.unwrap()).await.unwrap();
    assert_eq!(answer.status, 413);
    front.settled().await;
    assert_eq!(busy.load(Ordering::Relaxed), 6);
}

/// A layer that does not use bodies passes each piece on before the next one exists, in both
/// directions.
#[tokio::test]
async fn nothing_is_read_ahead() {
    let (reached, mut arrived) = tokio::sync::mpsc::channel::<Bytes>(1);
    let origin = Origin::start(move |request: Request<testkit::origin::Incoming>| {
        let reached = reached.clone();
        let (mut send, answer) = body::channel(1);
        tokio::spawn(async move {
            // Responds to each piece on arrival.
            let mut upload = request.into_body();
            while let Some(Ok(frame)) = upload.frame().await {
                let Ok(data) = frame.into_data() else { break };
                reached.send(data.clone()).await.unwrap();
                send.send_data(data).await.unwrap();
            }
        });
        async move { Response::new(answer) }
    });
    let front = front(marks(), &origin, &json!({ "Layers": ["outer", "inner"] }));
    for mut client in [front.http1().await, front.http2().await] {
        let (mut send, upload) = body::channel(1);
        let request = client.request("POST", "/").body(upload).unwrap();
        let asked = tokio::spawn(async move {
            let response = client.send_streaming(request).await;
            (client, response)
        });
        send.send_data(Bytes::from_static(b"one")).await.unwrap();
        assert_eq!(arrived.recv().await.unwrap(), "one");
        let (_client, response) = asked.await.unwrap();
        let mut response = response.unwrap();
        for piece in ["one", "two", "three"] {
            if piece != "one" {
                send.send_data(Bytes::from_static(piece.as_bytes()))
                    .await
                    .unwrap();
                assert_eq!(arrived.recv().await.unwrap(), piece);
            }
            let frame = response.frame().await.unwrap().unwrap();
            assert_eq!(frame.into_data().unwrap(), piece);
        }
        drop(send);
        assert!(response.frame().await.is_none_or(|frame| frame.is_ok()));
    }
    front.settled().await;
}

/// Bodies of other types, with their ends and their errors.
#[tokio::test]
async fn bodies_are_mapped() {
    let origin = Origin::echo();
    let builder = Proxy::builder().layer(
        "louder",
        around(|request: Request<ProxyRequestBody>, mut rest| async move {
            let cut = request.uri().path() == "/cut";
            let louder =
                |frame: Frame<Bytes>| frame.map_data(|data| data.to_ascii_uppercase().into());
            let request = request.map(|body| body.map_frame(louder));
            let response: Response<ProxyBody> = rest.call(request).await?;
            Ok(response.map(|body| match cut {
                true => body::failing("half", "as the path says"),
                false => body::boxed(body.map_frame(|frame| frame)),
            }))
        }),
    );
    let front = front(builder, &origin, &json!({ "Layers": ["louder"] }));
    let mut client = front.http1().await;
    let answer = post(&mut client, "/", "content").await;
    let echo: Echo = answer.json();
    assert_eq!(echo.body_text.as_deref(), Some("CONTENT"));
    front.settled().await;

    let request = client.request("GET", "/cut").body(body::empty()).unwrap();
    client.send(request).await.unwrap_err();
    front.settled().await;
    assert_eq!(front.proxy.overview().errors.get("Extension"), Some(&1));
}

/// A tunnel passes through layers, and counts as a request in flight until it ends.
#[tokio::test]
async fn websockets_pass_through() {
    let origin = Origin::upgrade_echo();
    let front = front(marks(), &origin, &json!({ "Layers": ["outer", "inner"] }));
    let http1 = websocket(front.server.addr(), "/chat").await.unwrap();
    let http2 = WebSocket::over(front.http2().await, "/chat").await.unwrap();
    for mut socket in [http1, http2] {
        let marks: Vec<_> = socket
            .response()
            .headers()
            .get_all("x-mark")
            .iter()
            .collect();
        assert_eq!(marks, ["inner", "outer"]);
        socket.send(Message::text("hello")).await.unwrap();
        let answer = socket.receive().await.unwrap();
        assert_eq!(answer, Some(Message::text("hello")));
        let before = front.proxy.routes()[0].requests;
        assert!(front.proxy.overview().active_requests >= 1);
        socket.close().await.unwrap();
        testkit::time::eventually("one more is counted", || async {
            front.proxy.routes()[0].requests == before + 1
        })
        .await;
    }
    front.settled().await;
    front.connections(0, 0).await;
    assert!(front.destination(0).errors.is_empty());
}

/// The response of the route describes the attempt.
#[tokio::test]
async fn the_response_tells_what_happened() {
    let origin = Origin::echo();
    let config = config_with_route(&[&origin.url()], &json!({ "Layers": ["outer"] }));
    let front = Front::build(&config, Origin::builder(), marks());
    let request = Request::get("/").body(body::empty()).unwrap();
    let response: Result<_, Infallible> = front.proxy.service().call(request).await;
    let response = response.unwrap();
    let info = response.extensions().get::<ExchangeInfo>().unwrap();
    assert_eq!(info.route.as_ref().unwrap().as_str(), "all");
    assert_eq!(info.cluster.as_ref().unwrap().as_str(), "c");
    assert_eq!(info.destination.as_ref().unwrap().as_str(), "d0");
    assert_eq!(info.upstream, Some(origin.addr()));
    assert!(info.time_to_head.is_some() && info.error.is_none());
    drop(response);
    front.settled().await;
}
