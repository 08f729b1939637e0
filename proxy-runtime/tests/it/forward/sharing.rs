//! Requests that share an HTTP/2 connection to their destination.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use h2::SendStream;
use h2::server::{Builder, Connection, SendResponse};
use http::{Request, Response};
use http_body_util::BodyExt;
use proxy_runtime::{ProxyBody, ProxyService};
use testkit::body;
use testkit::time::{eventually, guarded};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, Semaphore};
use tokio::task::JoinSet;
use tokio::time::timeout;
use tower_service::Service;

use crate::forward::front::{Front, config_with, h2c};

/// An HTTP/2 origin that a test serves stream by stream.
struct StreamOrigin {
    url: String,
    accepted: Arc<AtomicUsize>,
    _tasks: JoinSet<()>,
}

impl StreamOrigin {
    /// Starts with `streams` concurrent streams. `serve` gets each connection with its index.
    async fn start<S, F>(streams: u32, serve: S) -> Self
    where
        S: Fn(usize, Connection<TcpStream, Bytes>) -> F + Send + 'static,
        F: Future<Output = Result<(), h2::Error>> + Send + 'static,
    {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let accepted = Arc::new(AtomicUsize::new(0));
        let count = accepted.clone();
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let mut connections = JoinSet::new();
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let index = count.fetch_add(1, Ordering::SeqCst);
                let mut builder = Builder::new();
                builder.max_concurrent_streams(streams);
                let connection = builder.handshake(stream).await.unwrap();
                connections.spawn(serve(index, connection));
            }
        });
        Self {
            url,
            accepted,
            _tasks: tasks,
        }
    }

    fn accepted(&self) -> usize {
        self.accepted.load(Ordering::SeqCst)
    }
}

fn answer(respond: &mut SendResponse<Bytes>, content: &'static [u8]) -> Result<(), h2::Error> {
    let mut send = respond.send_response(Response::new(()), false)?;
    send.send_data(Bytes::from_static(content), true)
}

async fn get(mut service: ProxyService, path: &str) -> Response<ProxyBody> {
    let request = Request::get(format!("http://h{path}")).body(body::empty());
    service.call(request.unwrap()).await.unwrap()
}

/// The window of a stream before its client has read any of it, as in `docs/operate.md`.
const STREAM_WINDOW: usize = 256 * 1024;

/// Clients that read nothing use up the windows of their streams, and no shared window.
#[tokio::test]
async fn clients_that_take_nothing_hold_up_no_other() {
    const SLOW: usize = 32;
    let used_up = Arc::new(Semaphore::new(0));
    let seen = used_up.clone();
    let origin = StreamOrigin::start(100, move |_, mut connection| {
        let seen = seen.clone();
        async move {
            let mut endless = JoinSet::new();
            while let Some(asked) = connection.accept().await {
                let (request, mut respond) = asked?;
                if request.uri().path() == "/small" {
                    answer(&mut respond, &[b's'; 100])?;
                    continue;
                }
                let mut send = respond.send_response(Response::new(()), false)?;
                let seen = seen.clone();
                endless.spawn(async move {
                    let mut sent = 0;
                    send.reserve_capacity(2 * STREAM_WINDOW);
                    while sent < STREAM_WINDOW {
                        let capacity = std::future::poll_fn(|cx| send.poll_capacity(cx)).await;
                        let room = capacity.unwrap().unwrap();
                        send.send_data(vec![b'x'; room].into(), false).unwrap();
                        sent += room;
                    }
                    seen.add_permits(1);
                    // The response would continue if there were room for it.
                    std::future::pending::<()>().await;
                });
            }
            Ok(())
        }
    })
    .await;
    let front = Front::start(&config_with(&[&origin.url], &h2c()));
    let service = front.proxy.service();
    let mut slow = Vec::new();
    for _ in 0..SLOW {
        slow.push(guarded("a head", get(service.clone(), "/large")).await);
    }
    let all = guarded(
        "all windows to be used up",
        used_up.acquire_many(SLOW as u32),
    );
    drop(all.await.unwrap());
    let small = guarded("the head", get(service.clone(), "/small")).await;
    let content = guarded("the content", small.into_body().collect()).await;
    assert_eq!(content.unwrap().to_bytes(), [b's'; 100].as_slice());
    assert_eq!(origin.accepted(), 1, "they share a connection");
    drop(slow);
    front.settled().await;
}

/// Requests wait for a connection that closes. All of them share its replacement.
#[tokio::test]
async fn requests_that_are_sent_again_share_a_connection() {
    const WAITING: usize = 20;
    let leave = Arc::new(Notify::new());
    let leaving = leave.clone();
    let origin = StreamOrigin::start(1, move |index, mut connection| {
        let leaving = leaving.clone();
        async move {
            // The first request gets no response.
            let mut held = None;
            if index == 0 {
                held = connection.accept().await.transpose()?;
                tokio::select! {
                    ended = connection.accept() => drop(ended),
                    () = leaving.notified() => connection.abrupt_shutdown(h2::Reason::NO_ERROR),
                }
            }
            while let Some(asked) = connection.accept().await {
                answer(&mut asked?.1, b"done")?;
            }
            drop(held);
            Ok(())
        }
    })
    .await;
    let front = Front::start(&config_with(&[&origin.url], &h2c()));
    let service = front.proxy.service();
    let sent = |count| (0..count).map(|_| tokio::spawn(get(service.clone(), "/")));
    let held: Vec<_> = sent(1).collect();
    front.connections(0, 1).await;
    let waiting: Vec<_> = sent(WAITING).collect();
    eventually("all to wait", || async {
        front.destination(0).in_flight as usize == 1 + WAITING
    })
    .await;
    leave.notify_one();
    let mut served = 0;
    for request in waiting {
        let answered = guarded("an answer", request).await.unwrap();
        served += usize::from(answered.status() == 200);
    }
    assert_eq!(served, WAITING);
    for request in held {
        guarded("an end", request).await.unwrap();
    }
    assert_eq!(origin.accepted(), 2);
    front.settled().await;
}

/// An upload that goes on after its response, and is given up, ends alone: whoever it waits for, the client or the
/// destination.
#[tokio::test]
async fn an_upload_that_is_given_up_harms_no_other_request() {
    for (is_client_slow, connections) in [(true, 1), (false, 2)] {
        let (reset, end) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
        let (resets, ends) = (reset.clone(), end.clone());
        let origin = StreamOrigin::start(100, move |_, mut connection| {
            let (resets, ends) = (resets.clone(), ends.clone());
            async move {
                let mut tasks = JoinSet::new();
                while let Some(asked) = connection.accept().await {
                    let (request, mut respond) = asked?;
                    let resets = resets.clone();
                    match request.uri().path() {
                        // Responds early, and gives back no window.
                        "/early" => {
                            answer(&mut respond, b"early")?;
                            tasks.spawn(async move {
                                let mut body = request.into_body();
                                while let Some(Ok(_)) = body.data().await {}
                                resets.notify_one();
                            });
                        }
                        "/long" => {
                            let send = respond.send_response(Response::new(()), false)?;
                            tasks.spawn(send_until(send, ends.clone()));
                        }
                        _ => answer(&mut respond, b"short")?,
                    }
                }
                Ok(())
            }
        })
        .await;
        let mut config = config_with(&[&origin.url], &h2c());
        config["Clusters"]["c"]["HttpRequest"]["ActivityTimeout"] = "00:00:02".into();
        let front = Front::start(&config);
        let mut service = front.proxy.service();
        let long = get(service.clone(), "/long").await;
        let long = tokio::spawn(long.into_body().collect());
        let (_part, upload) = match is_client_slow {
            true => {
                let (part, upload) = body::channel(1);
                (Some(part), upload)
            }
            false => (None, body::endless(vec![b'x'; 64 * 1024])),
        };
        let request = Request::post("http://h/early").body(upload).unwrap();
        let early = service.call(request).await.unwrap().into_body().collect();
        assert_eq!(early.await.unwrap().to_bytes(), "early");
        guarded("the end of the upload alone", reset.notified()).await;
        // No window that the destination holds back is missed.
        let short = get(service.clone(), "/short").await.into_body().collect();
        assert_eq!(short.await.unwrap().to_bytes(), "short");
        assert_eq!(
            origin.accepted(),
            connections,
            "slow client: {is_client_slow}"
        );
        end.notify_one();
        let long = guarded("the end of the other response", long).await;
        assert!(long.unwrap().unwrap().to_bytes().ends_with(b"end"));
        front.settled().await;
    }
}

/// Sends parts of a response, and ends it when told so.
async fn send_until(mut send: SendStream<Bytes>, end: Arc<Notify>) {
    while timeout(Duration::from_millis(200), end.notified())
        .await
        .is_err()
    {
        send.send_data(Bytes::from_static(b"more"), false).unwrap();
    }
    send.send_data(Bytes::from_static(b"end"), true).unwrap();
}
