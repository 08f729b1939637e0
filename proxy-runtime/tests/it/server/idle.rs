//! Idle connections to destinations that close while the next request is sent.

use std::net::SocketAddr;
use std::sync::Arc;

use proxy_runtime::Proxy;
use proxy_runtime::server::ServerHandle;
use serde_json::json;
use testkit::raw::{RawClient, RawOrigin};
use testkit::time::guarded;
use tokio::sync::Barrier;

use crate::server::ways::{as_bytes, over_types, proxy};

const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

/// Serves `answered` requests on the first connection, and closes it when it has read another;
/// serves all on others.
fn origin(answered: usize) -> RawOrigin {
    RawOrigin::script(move |mut connection| async move {
        let answered = match connection.index() {
            0 => answered,
            _ => usize::MAX,
        };
        for _ in 0..answered {
            connection.read_whole_request().await?;
            connection.write_all(OK).await?;
        }
        connection.read_whole_request().await?;
        connection.close();
        Ok(())
    })
}

/// The forwarding paths of HTTP/1.1 requests.
const WAYS: [fn(&Proxy) -> ServerHandle; 2] = [as_bytes, over_types];

fn serve(origin: &RawOrigin, way: fn(&Proxy) -> ServerHandle) -> (ServerHandle, SocketAddr) {
    let server = way(&proxy(origin, &json!({}), ""));
    let address = server.local_addrs()[0];
    (server, address)
}

fn request(method: &str, body: &str) -> String {
    let length = match body {
        "" => String::new(),
        body => format!("Content-Length: {}\r\n", body.len()),
    };
    format!("{method} /path HTTP/1.1\r\nHost: h\r\n{length}\r\n{body}")
}

/// Number of requests served on the first connection; the next request with its content; its
/// status; number of requests that arrive.
///
/// RFC 9110 section 9.2.2: idempotent requests may be retried if no response has arrived.
const CASES: [(usize, &str, &str, u16, u64); 9] = [
    (1, "GET", "", 200, 3),
    (1, "HEAD", "", 200, 3),
    (1, "OPTIONS", "", 200, 3),
    (1, "DELETE", "", 200, 3),
    (1, "POST", "", 502, 2),
    (1, "PATCH", "", 502, 2),
    (1, "REPORT", "", 502, 2),
    // The content is gone.
    (1, "PUT", "content", 502, 2),
    // A new connection that closes is no race.
    (0, "GET", "", 502, 1),
];

#[tokio::test]
async fn a_request_that_may_be_repeated_is_if_its_connection_had_been_idle() {
    let cases = WAYS
        .into_iter()
        .flat_map(|way| CASES.map(|case| (way, case)));
    for (way, (answered, method, body, expected, requests)) in cases {
        let origin = origin(answered);
        let (_server, address) = serve(&origin, way);
        let mut client = RawClient::connect(address).await.unwrap();
        for _ in 0..answered {
            client.write_all(request("GET", "")).await.unwrap();
            let first = guarded("the first", client.read_response()).await.unwrap();
            assert_eq!(first.status(), 200);
        }
        client.write_all(request(method, body)).await.unwrap();
        let second = client.read_response_to(method);
        let second = guarded(method, second).await.unwrap();
        assert_eq!(second.status(), expected, "{method} {body}");
        assert_eq!(origin.traffic().requests(), requests, "{method} {body}");
    }
}

#[cfg(feature = "http2")]
#[tokio::test]
async fn so_is_one_that_came_as_a_stream() {
    use bytes::Bytes;
    use http::Request;

    use crate::server::streams::Client;

    for (answered, method, body, expected, requests) in CASES {
        let origin = origin(answered);
        let (_server, address) = serve(&origin, as_bytes);
        let mut client = Client::connect(address).await;
        let request = |method| {
            Request::builder()
                .method(method)
                .uri("http://h/path")
                .body(())
        };
        for _ in 0..answered {
            let first = client.send(request("GET").unwrap(), None, None);
            assert_eq!(guarded("the first", first).await.unwrap().status, 200);
        }
        let body = Some(body).filter(|body| !body.is_empty()).map(Bytes::from);
        let second = client.send(request(method).unwrap(), body, None);
        let second = guarded(method, second).await.unwrap();
        assert_eq!(second.status, expected, "{method}");
        assert_eq!(origin.traffic().requests(), requests, "{method}");
    }
}

#[tokio::test]
async fn what_is_repeated_is_the_whole_request_as_it_was() {
    for way in WAYS {
        // A usual length of heads, a long one, and one beyond the pooled buffers.
        for length in [5, 4000, 15_000] {
            repeated_whole(way, &"v".repeat(length)).await;
        }
    }
}

async fn repeated_whole(way: fn(&Proxy) -> ServerHandle, value: &str) {
    let origin = origin(1);
    let (_server, address) = serve(&origin, way);
    let mut client = RawClient::connect(address).await.unwrap();
    for _ in 0..2 {
        client
            .write_all(format!(
                "GET /a?b HTTP/1.1\r\nHost: h\r\nX-Name: {value}\r\n\r\n"
            ))
            .await
            .unwrap();
        let response = guarded("it", client.read_response()).await.unwrap();
        assert_eq!(response.text(), "ok");
    }
    let [first, second] = [0, 1].map(|index| origin.recording(index).text());
    let half = first.len() / 2;
    assert_eq!(first[..half], first[half..], "sent twice over the first");
    assert_eq!(first[..half], *second);
}

/// A retry is made once: the second failure is final.
#[tokio::test]
async fn a_request_is_repeated_once() {
    for way in WAYS {
        repeated_once(way).await;
    }
}

async fn repeated_once(way: fn(&Proxy) -> ServerHandle) {
    let origin = RawOrigin::script(|mut connection| async move {
        if connection.index() == 0 {
            connection.read_whole_request().await?;
            connection.write_all(OK).await?;
        }
        connection.read_whole_request().await?;
        connection.close();
        Ok(())
    });
    let (_server, address) = serve(&origin, way);
    let mut client = RawClient::connect(address).await.unwrap();
    for expected in [200, 502] {
        client.write_all(request("GET", "")).await.unwrap();
        let response = guarded("it", client.read_response()).await.unwrap();
        assert_eq!(response.status(), expected);
    }
    assert_eq!(origin.traffic().requests(), 3);
}

/// A destination that has begun to respond has processed the request.
#[tokio::test]
async fn a_request_with_a_beginning_of_an_answer_is_not_repeated() {
    let beginnings = ["HTTP/1.1 2", "HTTP/1.1 103 Early Hints\r\n\r\n"];
    for (way, beginning) in WAYS
        .into_iter()
        .flat_map(|way| beginnings.map(|begun| (way, begun)))
    {
        let origin = RawOrigin::script(move |mut connection| async move {
            connection.read_whole_request().await?;
            connection.write_all(OK).await?;
            connection.read_whole_request().await?;
            connection.write_all(beginning).await?;
            connection.close();
            Ok(())
        });
        let (_server, address) = serve(&origin, way);
        let mut client = RawClient::connect(address).await.unwrap();
        for expected in [200, 502] {
            client.write_all(request("GET", "")).await.unwrap();
            let response = guarded("it", client.read_response()).await.unwrap();
            assert_eq!(response.status(), expected, "{beginning}");
        }
        assert_eq!(origin.traffic().requests(), 2);
    }
}

/// A destination restarts: all waiting requests get no response, and all are retried.
#[tokio::test]
async fn however_many_wait_they_are_all_repeated() {
    const MANY: usize = 80;
    for way in WAYS {
        let read = Arc::new(Barrier::new(MANY));
        let origin = RawOrigin::script(move |mut connection| {
            let read = Arc::clone(&read);
            async move {
                for turn in 0..2 {
                    connection.read_whole_request().await?;
                    if connection.index() < MANY as u64 {
                        read.wait().await;
                        if turn == 1 {
                            connection.close();
                            return Ok(());
                        }
                    }
                    connection.write_all(OK).await?;
                }
                Ok(())
            }
        });
        let (_server, address) = serve(&origin, way);
        let mut clients = Vec::new();
        for _ in 0..MANY {
            clients.push(RawClient::connect(address).await.unwrap());
        }
        for turn in ["first", "second"] {
            for client in &mut clients {
                client.write_all(request("GET", "")).await.unwrap();
            }
            for client in &mut clients {
                let response = guarded(turn, client.read_response()).await.unwrap();
                assert_eq!(response.status(), 200, "{turn}");
            }
        }
    }
}

/// Responds to the first request with `content` bytes before it is complete, then reads it, and
/// expects nothing after it.
fn hasty(content: usize) -> RawOrigin {
    RawOrigin::script(move |mut connection| async move {
        let head = connection.read_request().await?;
        let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {content}\r\n\r\n");
        connection.write_all(answer).await?;
        connection.write_all(vec![b'y'; content]).await?;
        let body = connection.read_body(&head).await?;
        if connection.index() == 0 {
            assert_eq!(body.len(), LENGTH);
            connection.wait_for_close().await?;
        }
        Ok(())
    })
}

const LENGTH: usize = 300_000;

/// A destination that responds before the request is complete may take its rest for the next
/// request, however late the client reads the response.
#[tokio::test]
async fn a_connection_whose_response_began_before_its_request_had_ended_is_not_used_again() {
    // More than sockets hold: the response ends after the request.
    const MUCH: usize = 16 << 20;
    for (way, content) in WAYS
        .into_iter()
        .flat_map(|way| [2, MUCH].map(|content| (way, content)))
    {
        let origin = hasty(content);
        let (_server, address) = serve(&origin, way);
        let mut client = RawClient::connect(address).await.unwrap();
        let head = format!("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: {LENGTH}\r\n\r\n");
        client.write_all(head).await.unwrap();
        let early = client.read_response_head();
        let early = guarded("early", early).await.unwrap();
        assert_eq!(early.status, 200);
        client.write_all(vec![b'x'; LENGTH]).await.unwrap();
        client.read_exact(content).await.unwrap();
        client.write_all(request("GET", "")).await.unwrap();
        let next = guarded("next", client.read_response()).await.unwrap();
        assert_eq!(next.body.len(), content);
        guarded("its end", origin.recording(0).outcome())
            .await
            .unwrap();
    }
}
