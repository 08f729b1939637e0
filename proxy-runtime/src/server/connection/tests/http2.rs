use hyper::client::conn::http2::{SendRequest, handshake};
use testkit::raw::frame;
use tokio::sync::Notify;
use tokio::time::sleep;

use hyper_util::rt::TokioIo;

use super::*;
use crate::server::http2::peer::Peer;
use crate::server::memory::TUNNEL_BUFFERS;
use crate::stream::OnUpgrade;

/// Runs the client's tasks.
#[derive(Clone)]
struct LocalExecutor;

impl<F: Future + 'static> hyper::rt::Executor<F> for LocalExecutor {
    fn execute(&self, future: F) {
        tokio::task::spawn_local(future);
    }
}

/// An HTTP/2 client over a connection to `bench`, and the task that ends with the connection.
async fn open(bench: &Bench, handler: Handler) -> (SendRequest<Empty<Bytes>>, JoinHandle<()>) {
    let (client, _) = bench.connect(handler);
    let io = TokioIo::new(client.stream);
    let (sender, connection) = handshake(LocalExecutor, io).await.unwrap();
    let ended = tokio::task::spawn_local(async {
        connection.await.unwrap();
    });
    (sender, ended)
}

fn get(path: &str) -> Request<Empty<Bytes>> {
    Request::get(format!("http://t.example{path}"))
        .body(Empty::new())
        .unwrap()
}

async fn body(response: Response<hyper::body::Incoming>) -> String {
    let body = response.into_body().collect().await.unwrap().to_bytes();
    String::from_utf8(body.to_vec()).unwrap()
}

#[tokio::test(start_paused = true)]
async fn prior_knowledge_is_recognized() {
    local(async {
        let bench = Bench::new(Limits::default());
        let (mut sender, _ended) = open(&bench, Handler::path()).await;
        let response = sender.send_request(get("/a/../b")).await.unwrap();
        assert_eq!(response.version(), http::Version::HTTP_2);
        assert_eq!(body(response).await, "/b");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_preface_and_then_nothing_is_closed_after_the_header_timeout() {
    local(async {
        let bench = Bench::new(Limits::default());
        for preface in ["PRI * HTTP/2.0\r\n\r\n", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"] {
            let begin = Instant::now();
            let (mut client, task) = bench.connect(Handler::path());
            client.send(preface).await;
            task.await.unwrap();
            assert!(begin.elapsed() >= secs(10), "{:?}", begin.elapsed());
            assert!(begin.elapsed() <= secs(14), "{:?}", begin.elapsed());
        }
        assert_eq!(bench.metrics.counts().header_timeouts, 2);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn an_idle_connection_gets_goaway() {
    local(async {
        let bench = Bench::new(Limits::default());
        let (mut sender, ended) = open(&bench, Handler::path()).await;
        body(sender.send_request(get("/1")).await.unwrap()).await;
        let begin = Instant::now();
        // Without an error: GOAWAY came first.
        ended.await.unwrap();
        assert_elapsed(begin, secs(75));
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn draining_finishes_the_streams_that_are_open() {
    local(async {
        let bench = Bench::new(Limits::default());
        let (begun, go_on) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
        let handler = Handler::new({
            let (begun, go_on) = (begun.clone(), go_on.clone());
            move |_| {
                let (begun, go_on) = (begun.clone(), go_on.clone());
                async move {
                    begun.notify_one();
                    go_on.notified().await;
                    text("done")
                }
            }
        });
        let (mut sender, ended) = open(&bench, handler).await;
        let response = tokio::task::spawn_local(sender.send_request(get("/")));
        begun.notified().await;
        bench.worker.drain();
        sleep(secs(20)).await;
        assert!(sender.send_request(get("/")).await.is_err(), "GOAWAY came");
        go_on.notify_one();
        let response = response.await.unwrap().unwrap();
        assert!(!response.headers().contains_key("connection"));
        assert_eq!(body(response).await, "done");
        ended.await.unwrap();
        bench.worker.empty().await;
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_connection_gets_goaway_after_its_last_request() {
    local(async {
        let limits = Limits {
            requests_per_connection: 3,
            ..Limits::default()
        };
        let bench = Bench::new(limits);
        let (mut sender, ended) = open(&bench, Handler::path()).await;
        for path in ["/1", "/2", "/3"] {
            let response = sender.send_request(get(path)).await.unwrap();
            assert_eq!(body(response).await, path);
        }
        let begin = Instant::now();
        ended.await.unwrap();
        assert_elapsed(begin, Duration::ZERO);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn too_many_fields_are_431() {
    local(async {
        let bench = Bench::new(Limits::default());
        let (mut sender, _ended) = open(&bench, Handler::path()).await;
        let mut crumbs = get("/");
        for _ in 0..101 {
            crumbs
                .headers_mut()
                .append("cookie", "a=b".parse().unwrap());
        }
        assert_eq!(sender.send_request(crumbs).await.unwrap().status(), 431);
        let mut large = get("/");
        let value = "x".repeat(33_000).parse().unwrap();
        large.headers_mut().insert("x-large", value);
        assert_eq!(sender.send_request(large).await.unwrap().status(), 431);
        let response = sender.send_request(get("/still")).await.unwrap();
        assert_eq!(body(response).await, "/still");
    })
    .await;
}

/// RFC 8441: a tunnel is no idle connection, however silent it is, and lasts until the end of a drain.
#[tokio::test(start_paused = true)]
async fn a_tunnel_keeps_its_connection() {
    local(async {
        let handler = Handler::new(|mut request| async move {
            assert_eq!(request.method(), http::Method::CONNECT);
            let upgrade: OnUpgrade = request.extensions_mut().remove().unwrap();
            tokio::task::spawn_local(async move {
                let mut tunnel = upgrade.await.unwrap();
                let mut bytes = [0; 5];
                while tunnel.read_exact(&mut bytes).await.is_ok() {
                    tunnel.write_all(&bytes).await.unwrap();
                }
            });
            status(200)
        });
        let bench = Bench::new(Limits::default());
        let (mut sender, ended) = open(&bench, handler).await;
        // The server's settings have come.
        sleep(secs(1)).await;
        let mut connect = Request::connect("http://t.example/ws")
            .body(Empty::new())
            .unwrap();
        let websocket = hyper::ext::Protocol::from_static("websocket");
        connect.extensions_mut().insert(websocket);
        let response = sender.send_request(connect).await.unwrap();
        assert_eq!(response.status(), 200);
        let mut tunnel = TokioIo::new(hyper::upgrade::on(response).await.unwrap());
        let mut bytes = [0; 5];
        for _ in 0..3 {
            sleep(secs(600)).await;
            tunnel.write_all(b"hello").await.unwrap();
            tunnel.read_exact(&mut bytes).await.unwrap();
            bench.worker.drain();
        }
        assert!(!ended.is_finished());
        drop(tunnel);
        ended.await.unwrap();
        bench.worker.empty().await;
    })
    .await;
}

/// Tunnels run on tasks of their own, from which the one of their connection is told.
#[tokio::test(start_paused = true)]
async fn a_connection_ends_for_what_its_tunnels_hold() {
    local(async {
        let handler = Handler::new(|mut request| async move {
            let upgrade: OnUpgrade = request.extensions_mut().remove().unwrap();
            let pause = request.uri().path()[1..].parse().unwrap();
            tokio::task::spawn_local(async move {
                let mut tunnel = upgrade.await.unwrap();
                sleep(secs(pause)).await;
                let _ = tunnel.write_all(b"hello").await;
            });
            status(200)
        });
        let bench = Bench::with_memory(TUNNEL_BUFFERS + 10);
        let (client, _) = bench.connect(handler);
        // No tunnel may send a byte.
        let mut builder = h2::client::Builder::new();
        let opened = builder.initial_window_size(0).handshake(client.stream);
        let (mut sender, connection): (h2::client::SendRequest<Bytes>, _) = opened.await.unwrap();
        let ended = tokio::task::spawn_local(async {
            let _ = connection.await;
        });
        sleep(secs(1)).await;
        let mut open = async |pause| {
            let uri = format!("http://t.example/{pause}");
            let mut connect = Request::connect(uri).body(()).unwrap();
            let websocket = h2::ext::Protocol::from_static("websocket");
            connect.extensions_mut().insert(websocket);
            let (response, tunnel) = sender.send_request(connect, false).unwrap();
            assert_eq!(response.await.unwrap().status(), 200);
            tunnel
        };
        let (mut first, _second) = (open(1).await, open(3).await);
        let begin = Instant::now();
        let unread = Bytes::from_static(b"hello");
        first.send_data(unread, false).unwrap();
        sleep(secs(2)).await;
        assert_eq!(bench.held(), TUNNEL_BUFFERS + 5);
        assert!(!ended.is_finished());
        ended.await.unwrap();
        assert_elapsed(begin, secs(3));
        sleep(secs(1)).await;
        assert_eq!(bench.held(), 0);
        bench.worker.empty().await;
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn connect_without_a_protocol_is_rejected() {
    local(async {
        let bench = Bench::new(Limits::default());
        let (mut sender, _ended) = open(&bench, Handler::path()).await;
        let connect = Request::connect("t.example:443")
            .body(Empty::new())
            .unwrap();
        let response = sender.send_request(connect).await.unwrap();
        assert_eq!(response.status(), 405);
        assert!(
            response.headers()["allow"]
                .to_str()
                .unwrap()
                .contains("GET")
        );
    })
    .await;
}

/// A client that has vanished without a word does not keep what it has asked for.
#[tokio::test(start_paused = true)]
async fn a_busy_client_that_is_silent_is_asked_whether_it_is_there() {
    local(async {
        let bench = Bench::new(Limits::default());
        let handler = Handler::new(|_| std::future::pending());
        let (mut client, task) = bench.connect(handler);
        let begin = Instant::now();
        client.send(PREFACE_AND_SETTINGS).await;
        // GET, /, http, and an authority.
        client
            .send(b"\0\0\x06\x01\x05\0\0\0\x01\x82\x84\x86\x41\x01t")
            .await;
        task.await.unwrap();
        assert!(begin.elapsed() >= secs(80), "{:?}", begin.elapsed());
        assert!(begin.elapsed() <= secs(90), "{:?}", begin.elapsed());
        let mut sent = Vec::new();
        client.stream.read_to_end(&mut sent).await.unwrap();
        let ping = b"\0\0\x08\x06\0\0\0\0\0";
        let pings = sent.windows(ping.len()).filter(|window| window == ping);
        assert_eq!(pings.count(), 1);
        assert_eq!(bench.metrics.counts().active_requests, 0);
    })
    .await;
}

/// The preface with the client's settings, and its acknowledgement of the server's.
const PREFACE_AND_SETTINGS: &[u8] =
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0\0\0\0\x04\x01\0\0\0\0";

/// A stream that always has something to do lets others have their turn, and so does its connection.
#[tokio::test]
async fn a_stream_that_never_rests_holds_nobody_up() {
    local(async {
        let bench = Bench::new(Limits::default());
        let handler = Handler::new(|request| async move {
            if request.uri().path() == "/busy" {
                std::future::poll_fn::<(), _>(|cx| {
                    cx.waker().wake_by_ref();
                    Poll::Pending
                })
                .await;
            }
            text("calm")
        });
        let (mut sender, _ended) = open(&bench, handler.clone()).await;
        let busy = tokio::task::spawn_local(sender.send_request(get("/busy")));
        for _ in 0..10 {
            let response = sender.send_request(get("/")).await.unwrap();
            assert_eq!(body(response).await, "calm");
        }
        let (mut other, _ended) = open(&bench, handler).await;
        let response = other.send_request(get("/")).await.unwrap();
        assert_eq!(body(response).await, "calm");
        busy.abort();
    })
    .await;
}

/// Connections at the limit end after their last response, as with HTTP/1.1, but not during a request, because its
/// client would open another connection.
#[tokio::test(start_paused = true)]
async fn connections_get_goaway_behind_their_last_response_at_the_limit() {
    local(async {
        let handler = Handler::new(|request| async move {
            if request.uri().path() == "/slow" {
                sleep(secs(20)).await;
            }
            text("done")
        });
        let bench = Bench::new(Limits {
            connections: Some(2),
            ..Limits::default()
        });
        let (client, _) = bench.connect(handler.clone());
        let mut peer = Peer::open(client.stream, &[]).await;
        peer.get(1, "/slow").await;
        let _other = bench.worker.enter();
        let mut stream = 3;
        // It is never idle for long, and busy at each look.
        let mut go_on = async |times: u32| {
            for _ in 0..times {
                sleep(Duration::from_millis(100)).await;
                let frames = peer.frames();
                if frames.iter().any(|frame| frame.kind == frame::GOAWAY) {
                    return true;
                }
                peer.get(stream, "/").await;
                stream += 2;
            }
            false
        };
        assert!(!go_on(190).await, "the first one is not over");
        assert!(go_on(20).await, "it is");
        assert_eq!(peer.end_of(1).await.1, None);
    })
    .await;
}
