//! A request that is forwarded as bytes allocates nothing, and one that goes through a layer little.

use std::future::poll_fn;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};

use allocation_counter::measure;
use http::header::{HeaderValue, SERVER};
use http::{Request, Response};
use proxy_model::Snapshot;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tower_layer::layer_fn;
use tower_service::Service;

use crate::filter::{Filter, FilterContext, Flow, RequestEdit, ResponseEdit};
use crate::fixtures::config;
use crate::layer::{ProxyRequestBody, RouteService};
use crate::response::ProxyBody;
use crate::server::Limits;
use crate::server::connection::serve_cleartext;
use crate::server::handler::{ProxyHandler, Served};
use crate::server::metrics::ServerMetrics;
use crate::server::shared::WorkerShared;
use crate::server::worker::runtime;
use crate::{BoxError, ConnectionInfo, Proxy};

const REQUEST: &str =
    "GET /a?b=c HTTP/1.1\r\nHost: shop.example\r\nAccept: */*\r\nUser-Agent: test\r\n\r\n";

/// A request whose body does not come with its head.
const UPLOAD: [&str; 3] = [
    "POST /a HTTP/1.1\r\nHost: shop.example\r\nContent-Length: 12\r\n\r\n",
    "first, ",
    "last.",
];

const RESPONSE: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nDate: now\r\n\r\nok";

/// Requests that are counted. Beforehand there are as many that are not, which fill what is kept.
const REQUESTS: u64 = 100;

/// Sees everything and changes nothing.
struct Reader;

impl Filter for Reader {
    fn on_request(&self, head: &mut RequestEdit<'_>, context: &FilterContext<'_>) -> Flow {
        assert_eq!(context.route.id().as_str(), "r");
        assert_eq!(head.header("accept"), Some(b"*/*".as_slice()));
        assert_eq!(head.headers().count(), 2);
        Flow::Continue
    }

    fn on_response(&self, head: &mut ResponseEdit<'_>, _: &FilterContext<'_>) {
        assert_eq!(head.header("date"), Some(b"now".as_slice()));
    }
}

/// Sets headers to values that are there.
struct Setter;

impl Filter for Setter {
    fn on_request(&self, head: &mut RequestEdit<'_>, _: &FilterContext<'_>) -> Flow {
        head.set("x-checked", HeaderValue::from_static("yes"))
            .unwrap();
        head.remove("accept").unwrap();
        Flow::Continue
    }

    fn on_response(&self, head: &mut ResponseEdit<'_>, _: &FilterContext<'_>) {
        head.append("x-checked", HeaderValue::from_static("yes"))
            .unwrap();
    }
}

/// Sets a header to a value that is made of text.
struct Maker;

impl Filter for Maker {
    fn on_request(&self, head: &mut RequestEdit<'_>, _: &FilterContext<'_>) -> Flow {
        head.set("x-made", "yes").unwrap();
        Flow::Continue
    }
}

/// Marks requests and responses, as layers do.
#[derive(Clone)]
struct Marked(RouteService);

impl Service<Request<ProxyRequestBody>> for Marked {
    type Response = Response<ProxyBody>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, BoxError>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Service::<Request<ProxyRequestBody>>::poll_ready(&mut self.0, cx)
    }

    fn call(&mut self, mut request: Request<ProxyRequestBody>) -> Self::Future {
        let mark = (SERVER, HeaderValue::from_static("marked"));
        request.headers_mut().insert(mark.0.clone(), mark.1.clone());
        let answer = self.0.call(request);
        Box::pin(async move {
            let mut response = answer.await?;
            response.headers_mut().insert(mark.0, mark.1);
            Ok(response)
        })
    }
}

/// Answers whatever comes and ends so.
async fn origin(listener: TcpListener, end: &'static str) {
    let (mut stream, _) = listener.accept().await.unwrap();
    let mut buffer = [0; 16 * 1024];
    let mut filled = 0;
    loop {
        filled += stream.read(&mut buffer[filled..]).await.unwrap();
        if buffer[..filled].ends_with(end.as_bytes()) {
            filled = 0;
            stream.write_all(RESPONSE).await.unwrap();
        }
    }
}

/// Lets the others have their turn, without memory for who does so.
async fn turn() {
    let mut is_over = false;
    poll_fn(|cx| match std::mem::replace(&mut is_over, true) {
        true => Poll::Ready(()),
        false => {
            cx.waker().wake_by_ref();
            Poll::Pending
        }
    })
    .await;
}

/// Sends a request part by part. A response ends with what its body is.
async fn exchange(client: &mut TcpStream, request: &[&str]) {
    for part in request {
        client.write_all(part.as_bytes()).await.unwrap();
        for _ in 0..8 {
            // Whatever part comes next comes after this one was seen.
            turn().await;
        }
    }
    let mut buffer = [0; 1024];
    let mut filled = 0;
    while !buffer[..filled].ends_with(b"\r\n\r\nok") {
        let count = client.read(&mut buffer[filled..]).await.unwrap();
        filled += count;
        let text = String::from_utf8_lossy(&buffer[..filled]);
        assert!(
            count > 0 && buffer.starts_with(b"HTTP/1.1 200 OK\r\n"),
            "{text}"
        );
    }
}

/// Counts the allocations for [`REQUESTS`] requests of a route with these filters, in the thread that serves
/// them.
fn allocations(filters: &str) -> u64 {
    allocations_of(&format!(r#""Filters":{filters}"#), &[REQUEST])
}

/// The same for a route with these settings, and requests that come in these parts.
fn allocations_of(settings: &str, request: &[&'static str]) -> u64 {
    let end = match request {
        [_] => "\r\n\r\n",
        [.., last] => *last,
        [] => unreachable!("a request has a head"),
    };
    let runtime = runtime().unwrap();
    let mut client = runtime.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::task::spawn_local(origin(listener, end));
        let builder = Proxy::builder()
            .filter("reader", Reader)
            .filter("setter", Setter)
            .filter("maker", Maker)
            .layer("mark", layer_fn(Marked));
        let config = config(&format!(
            r#"{{"Routes":{{"r":{{"ClusterId":"c","Match":{{"Path":"/{{**all}}"}},{settings}}}}},
                "Clusters":{{"c":{{"Destinations":{{"d":{{"Address":"http://{address}/"}}}}}}}}}}"#
        ));
        let (snapshot, _) = Snapshot::compile(config, &builder.compile_options()).unwrap();
        let (proxy, _driver) = builder.snapshot(Arc::new(snapshot)).build().unwrap();

        let metrics = ServerMetrics::new(1);
        let worker = WorkerShared::new(Limits::default(), 100, metrics.worker(0).clone(), None);
        let worker = Arc::new(worker);
        let front = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let client = TcpStream::connect(front.local_addr().unwrap())
            .await
            .unwrap();
        let (stream, remote) = front.accept().await.unwrap();
        tokio::task::spawn_local(serve_cleartext(
            stream,
            ConnectionInfo::new(remote),
            Rc::new(Served::new(ProxyHandler::new(proxy.service()))),
            worker.enter(),
            worker,
        ));
        client
    });
    let mut run = || {
        runtime.block_on(async {
            for _ in 0..REQUESTS {
                exchange(&mut client, request).await;
            }
        });
    };
    run();
    measure(run).count_total
}

#[test]
fn a_request_allocates_nothing() {
    assert_eq!(allocations("[]"), 0);
}

/// Not even one of those that browsers send.
#[test]
fn a_request_with_a_long_head_allocates_nothing() {
    for length in [1000, 3000, 6000] {
        let cookie = "c".repeat(length);
        let head = format!("GET /a HTTP/1.1\r\nHost: shop.example\r\nCookie: c={cookie}\r\n\r\n");
        let blocks = allocations_of(r#""Filters":[]"#, &[head.leak()]);
        assert_eq!(blocks, 0, "{length}");
    }
}

/// Nor does it have a timer of its own, though its client is waited for.
#[test]
fn a_request_whose_body_comes_later_allocates_nothing_either() {
    assert_eq!(allocations_of(r#""Filters":[]"#, &UPLOAD), 0);
}

#[test]
fn a_filter_that_changes_nothing_allocates_nothing() {
    assert_eq!(allocations(r#"["reader"]"#), 0);
    assert_eq!(allocations(r#"["reader", "reader", "reader"]"#), 0);
}

#[test]
fn a_filter_that_changes_headers_allocates_what_their_values_are_made_of() {
    assert_eq!(allocations(r#"["setter"]"#), 0);
    assert_eq!(allocations(r#"["maker"]"#), REQUESTS, "one for each value");
    assert_eq!(allocations(r#"["setter", "maker"]"#), REQUESTS);
}

/// The remaining allocations belong to `http` types and tower: the futures of server, layer and route, counters of the
/// request and of its attempt, a block for each head, and its extensions. benches/COMPARISON.md lists them all.
#[test]
fn a_layer_costs_a_few_blocks() {
    let own = 1;
    let blocks = allocations_of(r#""Layers":["mark"]"#, &[REQUEST]) / REQUESTS - own;
    assert!(blocks <= 14, "{blocks}");
}
