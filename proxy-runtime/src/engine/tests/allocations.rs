//! A request that is forwarded as bytes allocates nothing.

use std::rc::Rc;
use std::sync::Arc;

use allocation_counter::measure;
use http::HeaderValue;
use proxy_model::Snapshot;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::filter::{Filter, FilterContext, Flow, RequestEdit, ResponseEdit};
use crate::fixtures::config;
use crate::server::Limits;
use crate::server::connection::{Served, serve_cleartext};
use crate::server::metrics::ServerMetrics;
use crate::server::shared::WorkerShared;
use crate::server::worker::runtime;
use crate::{ConnectionInfo, Proxy};

const REQUEST: &[u8] =
    b"GET /a?b=c HTTP/1.1\r\nHost: shop.example\r\nAccept: */*\r\nUser-Agent: test\r\n\r\n";

const RESPONSE: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nDate: now\r\n\r\nok";

/// Requests that are counted. Beforehand there are as many that are not, which fill what is kept.
const REQUESTS: u64 = 100;

/// Sees everything and changes nothing.
struct Reader;

impl Filter for Reader {
    fn on_request(&self, head: &mut RequestEdit<'_>, context: &FilterContext<'_>) -> Flow {
        assert_eq!(context.route_id().as_str(), "r");
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

/// Answers whatever comes.
async fn origin(listener: TcpListener) {
    let (mut stream, _) = listener.accept().await.unwrap();
    let mut buffer = [0; 1024];
    let mut filled = 0;
    loop {
        filled += stream.read(&mut buffer[filled..]).await.unwrap();
        if buffer[..filled].ends_with(b"\r\n\r\n") {
            filled = 0;
            stream.write_all(RESPONSE).await.unwrap();
        }
    }
}

/// A response ends with what its body is.
async fn exchange(client: &mut TcpStream) {
    client.write_all(REQUEST).await.unwrap();
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

/// How often something is allocated for [`REQUESTS`] requests of a route with these filters, by anybody in the thread that
/// serves them.
fn allocations(filters: &str) -> u64 {
    let runtime = runtime().unwrap();
    let mut client = runtime.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::task::spawn_local(origin(listener));
        let builder = Proxy::builder()
            .filter("reader", Reader)
            .filter("setter", Setter)
            .filter("maker", Maker);
        let config = config(&format!(
            r#"{{"Routes":{{"r":{{"ClusterId":"c","Match":{{"Path":"/{{**all}}"}},"Filters":{filters}}}}},
                "Clusters":{{"c":{{"Destinations":{{"d":{{"Address":"http://{address}/"}}}}}}}}}}"#
        ));
        let (snapshot, _) = Snapshot::compile(config, &builder.compile_options()).unwrap();
        let (proxy, _driver) = builder.snapshot(Arc::new(snapshot)).build().unwrap();

        let metrics = ServerMetrics::new(1);
        let worker = WorkerShared::new(Limits::default(), 100, metrics.worker(0).clone(), None);
        let worker = Arc::new(worker);
        let front = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let client = TcpStream::connect(front.local_addr().unwrap()).await.unwrap();
        let (stream, remote) = front.accept().await.unwrap();
        tokio::task::spawn_local(serve_cleartext(
            stream,
            ConnectionInfo::new(remote),
            Rc::new(Served::new(proxy.service())),
            worker.enter(),
            worker,
        ));
        client
    });
    let mut run = || {
        runtime.block_on(async {
            for _ in 0..REQUESTS {
                exchange(&mut client).await;
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
