//! A connection that broke before it took a byte.

use bytes::Bytes;
use futures_util::stream::iter;
use http::Request;
use http_body::Frame;
use http_body_util::{BodyExt, Full, StreamBody};
use proxy_model::compiled::ClusterIndex;
use testkit::raw::RawOrigin;
use testkit::time::guarded;
use tokio::time::Instant;
use tower_service::Service;

use crate::fixtures::snapshot;
use crate::upstream::{ConnectionRequest, Protocols, Resetting};
use crate::{Proxy, ProxyService};

/// A proxy for one destination, to which there may be one connection. It is idle, has carried a request, and breaks
/// as it is written to.
async fn with_a_broken_connection(url: &str, takes: usize) -> ProxyService {
    let snapshot = snapshot(&format!(
        r#"{{"Routes":{{"r":{{"ClusterId":"c","Match":{{"Path":"/{{**rest}}"}}}}}},
            "Clusters":{{"c":{{"HttpClient":{{"MaxConnectionsPerServer":1}},
                "Destinations":{{"d":{{"Address":"{url}"}}}}}}}}}}"#
    ));
    let (proxy, _) = Proxy::builder().snapshot(snapshot).build().unwrap();
    let service = proxy.service();
    let generation = service.shared().load_full();
    let state = generation.cluster(ClusterIndex(0));
    let wanted = ConnectionRequest {
        destination: &state.destinations()[0],
        upstream: generation.snapshot().clusters()[0].upstream(),
        client: state.client(),
        protocols: Protocols::Http1,
        announced: None,
        fresh: false,
        careful: false,
    };
    let mut lease = service.pool().acquire(wanted, None).await.unwrap();
    let connection = lease.raw().unwrap();
    assert!(!connection.is_reused());
    connection.io.replace(Resetting::after(takes, false));
    lease.release(Instant::now());
    service
}

async fn post(service: &mut ProxyService) -> (u16, Bytes) {
    let request = Request::post("http://h/").body(Full::new(Bytes::from("content")));
    let response = service.call(request.unwrap()).await.unwrap();
    let status = response.status().as_u16();
    let content = response.into_body().collect().await.unwrap().to_bytes();
    (status, content)
}

/// The place of the broken connection is needed for the new one.
#[tokio::test]
async fn a_request_that_has_not_left_is_sent_over_a_new_connection() {
    let origin = RawOrigin::script(|mut connection| async move {
        let Ok((_, content)) = connection.read_whole_request().await else {
            return Ok(());
        };
        let head = format!(
            "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n",
            content.len()
        );
        connection
            .write_all([head.as_bytes(), &content].concat())
            .await
    });
    let mut service = with_a_broken_connection(&origin.url(), 0).await;
    let answer = guarded("the second try", post(&mut service)).await;
    assert_eq!(answer, (200, Bytes::from("content")));
    assert_eq!(origin.traffic().requests(), 1);
}

#[tokio::test]
async fn a_request_of_which_a_byte_has_left_is_not_sent_again() {
    let origin = RawOrigin::answering("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    let mut service = with_a_broken_connection(&origin.url(), 1).await;
    let (status, _) = guarded("the answer", post(&mut service)).await;
    assert_eq!(status, 502);
    assert_eq!(origin.traffic().requests(), 0);
}

/// The body of the request has failed, so there is nothing to send over another connection.
#[tokio::test]
async fn a_request_whose_body_fails_is_not_sent_again() {
    let origin = RawOrigin::answering("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    let snapshot = snapshot(&format!(
        r#"{{"Routes":{{"r":{{"ClusterId":"c","Match":{{"Path":"/{{**rest}}"}}}}}},
            "Clusters":{{"c":{{"Destinations":{{"d":{{"Address":"{}"}}}}}}}}}}"#,
        origin.url()
    ));
    let builder = Proxy::builder().max_request_body(3).snapshot(snapshot);
    let (proxy, _) = builder.build().unwrap();
    let mut service = proxy.service();
    let frame = |frame: Result<&'static str, &str>| {
        let frame = frame.map(|text| Frame::data(Bytes::from(text)));
        StreamBody::new(iter([frame.map_err(crate::BoxError::from)]))
    };
    for (failing, status) in [(Ok("too large"), 413), (Err("the client has gone"), 400)] {
        // Leaves a connection that has been used.
        let ready = Request::get("http://h/").body(Full::new(Bytes::new()));
        let answer = service.call(ready.unwrap()).await.unwrap();
        drop(answer.into_body().collect().await.unwrap());
        let request = Request::post("http://h/").body(frame(failing)).unwrap();
        let answer = guarded("the answer", service.call(request)).await.unwrap();
        assert_eq!(answer.status(), status);
    }
    assert_eq!(origin.traffic().requests(), 2, "those without a body");
}

/// A pool's own task is dropped by a runtime that is ending, in the very call that would start it.
#[test]
fn a_request_while_the_runtime_ends_does_not_hang() {
    let (done, is_done) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        let handle = runtime.handle().clone();
        drop(runtime);
        let _entered = handle.enter();
        let snapshot = snapshot(
            r#"{"Routes":{"r":{"ClusterId":"c","Match":{"Path":"/{**rest}"}}},
                "Clusters":{"c":{"Destinations":{"d":{"Address":"http://127.0.0.1:9"}}}}}"#,
        );
        let (proxy, _) = Proxy::builder().snapshot(snapshot).build().unwrap();
        let service = proxy.service();
        let generation = service.shared().load_full();
        let state = generation.cluster(ClusterIndex(0));
        let acquiring = service.pool().acquire(
            ConnectionRequest {
                destination: &state.destinations()[0],
                upstream: generation.snapshot().clusters()[0].upstream(),
                client: state.client(),
                protocols: Protocols::Http1,
                announced: None,
                fresh: false,
                careful: false,
            },
            None,
        );
        let mut acquiring = std::pin::pin!(acquiring);
        let polled = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let mut context = std::task::Context::from_waker(std::task::Waker::noop());
            drop(acquiring.as_mut().poll(&mut context));
        }));
        // That there is no runtime any more may well be found.
        drop(polled);
        done.send(()).unwrap();
    });
    is_done
        .recv_timeout(testkit::time::GUARD)
        .expect("it hangs");
}

/// The part of a body that comes while another connection is opened is sent over that.
#[cfg(feature = "server")]
#[tokio::test]
async fn a_body_that_comes_while_a_broken_connection_is_replaced_is_sent_whole() {
    use std::num::NonZeroUsize;

    use testkit::raw::RawClient;

    use crate::server::{Listener, Server};

    let origin = RawOrigin::script(|mut connection| async move {
        let (_, content) = connection.read_whole_request().await?;
        let text = content.len().to_string();
        let head = format!(
            "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{text}",
            text.len()
        );
        connection.write_all(head).await
    });
    for length in [10_000_usize, 20_000, 200_000] {
        let proxy = with_a_broken_connection(&origin.url(), 0).await;
        let server = Server::builder(move || proxy.clone())
            .with_workers(NonZeroUsize::MIN)
            .with_listener(Listener::http(([127, 0, 0, 1], 0).into()));
        let server = server.bind().unwrap().start().unwrap();
        let mut client = RawClient::connect(server.local_addrs()[0]).await.unwrap();
        let head = format!("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: {length}\r\n\r\n");
        let request = [head.into_bytes(), vec![b'x'; length]].concat();
        client.write_all(&request).await.unwrap();
        let answer = guarded("the answer", client.read_response()).await.unwrap();
        assert_eq!(answer.text(), length.to_string());
    }
}
