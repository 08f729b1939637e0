use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use h2::{RecvStream, SendStream, client, server};
use http::{HeaderMap, Request};
use tokio::io::{AsyncReadExt, DuplexStream, duplex};
use tokio::task::{JoinHandle, LocalSet, spawn_local};
use tokio::time::sleep;

use crate::error::Allowance;
use crate::forward::exchange::failure::UploadFailure;
use crate::forward::exchange::frames_upload::{Allowed, FramesUpload};
use crate::forward::exchange::outbound::Outbound;
use crate::http1::Framing;

fn allowed(content: Option<u64>) -> Allowed {
    Allowed {
        content: Allowance::new(content),
        trailers: 100,
    }
}

const HEAD: &str = "head\r\n\r\n";

/// Runs a test on one thread, since requests to destinations stay on theirs.
async fn local<F: Future>(test: F) -> F::Output {
    LocalSet::new().run_until(test).await
}

/// The client's and the server's side of a stream.
async fn stream() -> (SendStream<Bytes>, RecvStream) {
    let (near, far) = duplex(1 << 20);
    let (mut sender, connection) = client::handshake(near).await.unwrap();
    tokio::spawn(connection);
    let request = Request::post("http://t.example/").body(()).unwrap();
    let (response, up) = sender.send_request(request, false).unwrap();
    let mut server = server::handshake(far).await.unwrap();
    let (request, respond) = server.accept().await.unwrap().unwrap();
    tokio::spawn(async move {
        // What is dropped resets the stream.
        let _kept = (response, sender, respond);
        while server.accept().await.is_some() {}
    });
    (up, request.into_body())
}

/// Sends a body behind a head to what is returned.
fn upload(
    head: &str,
    mut upload: FramesUpload,
    body: RecvStream,
    room: usize,
) -> (DuplexStream, JoinHandle<Result<u64, UploadFailure>>) {
    let (mut near, far) = duplex(room);
    let mut body = Some(body);
    let mut outbound = Outbound::new(head.as_bytes().to_vec());
    let task = spawn_local(async move {
        let mut has_news = false;
        poll_fn(|cx| upload.poll(cx, &mut body, &mut outbound, &mut near, &mut has_news)).await?;
        Ok(outbound.sent)
    });
    (far, task)
}

fn chunked() -> FramesUpload {
    FramesUpload::new(Framing::Chunked, true, allowed(None))
}

async fn received(mut far: DuplexStream) -> String {
    let mut text = String::new();
    far.read_to_string(&mut text).await.unwrap();
    text
}

#[tokio::test(start_paused = true)]
async fn the_window_opens_by_what_the_destination_has_taken() {
    local(async {
        const WINDOW: usize = 65_535;
        const ROOM: usize = 1000;
        let (mut up, body) = stream().await;
        let plain = FramesUpload::new(Framing::Length(u64::MAX), true, allowed(None));
        let (mut far, _task) = upload("", plain, body, ROOM);
        let sent = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&sent);
        tokio::spawn(async move {
            loop {
                up.reserve_capacity(16 * 1024);
                let Some(Ok(room)) = poll_fn(|cx| up.poll_capacity(cx)).await else {
                    return;
                };
                counter.fetch_add(room, Relaxed);
                up.send_data(vec![7; room].into(), false).unwrap();
            }
        });
        // The paused clock advances when no task can run.
        sleep(Duration::from_secs(1)).await;
        assert_eq!(sent.load(Relaxed), WINDOW, "nothing was taken");
        let mut taken = vec![0; WINDOW - ROOM - 1];
        far.read_exact(&mut taken).await.unwrap();
        sleep(Duration::from_secs(1)).await;
        assert_eq!(sent.load(Relaxed), WINDOW, "the last byte was not");
        far.read_u8().await.unwrap();
        sleep(Duration::from_secs(1)).await;
        assert_eq!(sent.load(Relaxed), 2 * WINDOW);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn frames_that_came_together_are_one_chunk() {
    local(async {
        let (mut up, body) = stream().await;
        for part in ["ab", "", "cde"] {
            up.send_data(part.into(), false).unwrap();
        }
        sleep(Duration::from_secs(1)).await;
        let (far, task) = upload(HEAD, chunked(), body, 1 << 16);
        sleep(Duration::from_secs(1)).await;
        up.send_data("f".into(), true).unwrap();
        assert_eq!(task.await.unwrap().unwrap(), 6);
        let expected = "head\r\n\r\n5\r\nabcde\r\n1\r\nf\r\n0\r\n\r\n";
        assert_eq!(received(far).await, expected);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_whole_body_leaves_with_the_head_and_trailers_behind_it() {
    local(async {
        let (mut up, body) = stream().await;
        up.send_data("abc".into(), false).unwrap();
        let mut trailers = HeaderMap::new();
        trailers.insert("x-sum", "1".parse().unwrap());
        trailers.insert("content-length", "9".parse().unwrap());
        up.send_trailers(trailers).unwrap();
        sleep(Duration::from_secs(1)).await;
        let (far, task) = upload(HEAD, chunked(), body, 1 << 16);
        assert_eq!(task.await.unwrap().unwrap(), 3);
        let expected = "head\r\n\r\n3\r\nabc\r\n0\r\nx-sum: 1\r\n\r\n";
        assert_eq!(received(far).await, expected);

        let (mut up, body) = stream().await;
        up.send_data(Bytes::new(), true).unwrap();
        let (far, task) = upload(HEAD, chunked(), body, 1 << 16);
        assert_eq!(task.await.unwrap().unwrap(), 0);
        assert_eq!(received(far).await, "head\r\n\r\n0\r\n\r\n");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn what_is_too_large_or_reset_is_the_clients_fault() {
    local(async {
        let (mut up, body) = stream().await;
        up.send_data("abcd".into(), false).unwrap();
        let limited = FramesUpload::new(Framing::Chunked, true, allowed(Some(3)));
        let (far, task) = upload("", limited, body, 1 << 16);
        let status = match task.await.unwrap().unwrap_err() {
            UploadFailure::Client { status, .. } => status,
            UploadFailure::Destination { .. } => panic!("not the destination's"),
        };
        assert_eq!(status, 413);
        assert_eq!(received(far).await, "");

        let (mut up, body) = stream().await;
        let (far, task) = upload(HEAD, chunked(), body, 1 << 16);
        sleep(Duration::from_secs(1)).await;
        up.send_reset(h2::Reason::CANCEL);
        assert!(matches!(
            task.await.unwrap(),
            Err(UploadFailure::Client { .. })
        ));
        assert_eq!(received(far).await, "head\r\n\r\n", "it has no end");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_destination_that_is_closed_has_got_nothing() {
    local(async {
        let (mut up, body) = stream().await;
        up.send_data("abc".into(), true).unwrap();
        let (far, task) = upload(HEAD, chunked(), body, 1 << 16);
        drop(far);
        let broken = task.await.unwrap().unwrap_err();
        assert!(matches!(
            broken,
            UploadFailure::Destination { is_unsent: true }
        ));
    })
    .await;
}

/// Unread data of a stopped upload leaves the connection's window to other streams.
#[tokio::test(start_paused = true)]
async fn an_upload_that_is_stopped_gives_the_window_back() {
    local(async {
        const WINDOW: usize = 65_535;
        let (near, far) = duplex(1 << 20);
        let (mut sender, connection) = client::handshake(near).await.unwrap();
        tokio::spawn(connection);
        let mut server = server::handshake(far).await.unwrap();
        let (mut kept, mut streams) = (Vec::new(), Vec::new());
        for _ in 0..2 {
            let request = Request::post("http://t.example/").body(()).unwrap();
            let (response, up) = sender.send_request(request, false).unwrap();
            let (request, respond) = server.accept().await.unwrap().unwrap();
            kept.push((response, respond));
            streams.push((up, request.into_body()));
        }
        tokio::spawn(async move { while server.accept().await.is_some() {} });
        let (mut other, _other_body) = streams.pop().unwrap();
        let (mut up, body) = streams.pop().unwrap();
        let mut body = Some(body);
        up.send_data(vec![7; WINDOW].into(), false).unwrap();
        sleep(Duration::from_secs(1)).await;
        other.reserve_capacity(WINDOW);
        assert_eq!(other.capacity(), 0, "the connection's window is used up");

        let mut upload = chunked();
        let mut outbound = Outbound::new(HEAD.as_bytes().to_vec());
        // The destination takes nothing of what was read.
        let (mut destination, _far) = duplex(1);
        let mut has_news = false;
        let is_done = poll_fn(|cx| {
            let polled = upload.poll(
                cx,
                &mut body,
                &mut outbound,
                &mut destination,
                &mut has_news,
            );
            Poll::Ready(polled.is_ready())
        });
        assert!(!is_done.await);
        upload.stop(&mut body);
        sleep(Duration::from_secs(1)).await;
        assert_eq!(other.capacity(), WINDOW);
    })
    .await;
}
