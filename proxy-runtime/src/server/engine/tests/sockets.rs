//! Large bodies between real sockets.

use proxy_model::compiled::ClusterIndex;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinHandle, spawn_local};

use super::scene::{local, serve_over};
use crate::fixtures::snapshot;
use crate::{Proxy, ProxyService};

const LARGE: usize = 3 << 20;

/// A proxy for a destination of which the first connection is the test's.
async fn destination() -> (ProxyService, JoinHandle<TcpStream>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let snapshot = snapshot(&format!(
        r#"{{"Routes":{{"r":{{"ClusterId":"c","Match":{{"Path":"/{{**rest}}"}}}}}},
            "Clusters":{{"c":{{"Destinations":{{"d":{{"Address":"http://{address}"}}}}}}}}}}"#
    ));
    let (proxy, _) = Proxy::builder().snapshot(snapshot).build().unwrap();
    let destination = spawn_local(async move { listener.accept().await.unwrap().0 });
    (proxy.service(), destination)
}

/// The same with a client of the proxy before it.
async fn scene() -> (TcpStream, JoinHandle<TcpStream>, ProxyService) {
    let (service, destination) = destination().await;
    let near = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let client = TcpStream::connect(near.local_addr().unwrap());
    let (client, accepted) = tokio::join!(client, near.accept());
    serve_over(accepted.unwrap().0, service.clone());
    (client.unwrap(), destination, service)
}

/// Bytes of which no two neighbours of a block are the same.
fn body(length: usize) -> Vec<u8> {
    let numbers = (0..length as u32).map(|i| i.wrapping_mul(2_654_435_761));
    numbers.map(|number| (number >> 24) as u8).collect()
}

async fn head(stream: &mut (impl AsyncRead + Unpin)) -> String {
    let mut bytes = Vec::new();
    while !bytes.ends_with(b"\r\n\r\n") {
        bytes.push(stream.read_u8().await.unwrap());
    }
    String::from_utf8(bytes).unwrap()
}

async fn content(stream: &mut (impl AsyncRead + Unpin), length: usize) -> Vec<u8> {
    let mut content = vec![0; length];
    stream.read_exact(&mut content).await.unwrap();
    content
}

fn post(length: usize) -> String {
    format!("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: {length}\r\n\r\n")
}

fn answer(length: usize) -> String {
    format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n")
}

/// Answers `count` requests with their own bodies.
async fn echo(mut destination: TcpStream, lengths: &[usize]) {
    for &length in lengths {
        head(&mut destination).await;
        let content = content(&mut destination, length).await;
        let head = answer(length);
        destination.write_all(head.as_bytes()).await.unwrap();
        destination.write_all(&content).await.unwrap();
    }
}

#[tokio::test]
async fn large_bodies_arrive_whole_and_the_next_request_after_them() {
    local(async {
        let (mut client, destination, _service) = scene().await;
        let lengths = [LARGE, 5, LARGE + 1];
        let echo = spawn_local(async move { echo(destination.await.unwrap(), &lengths).await });
        let (mut reader, mut writer) = client.split();
        // All of them at once: what follows a body is not a part of it.
        let sending = async {
            for length in lengths {
                writer.write_all(post(length).as_bytes()).await.unwrap();
                writer.write_all(&body(length)).await.unwrap();
            }
        };
        let reading = async {
            for length in lengths {
                head(&mut reader).await;
                let content = content(&mut reader, length).await;
                assert!(content == body(length), "{length}");
            }
        };
        tokio::join!(sending, reading);
        echo.await.unwrap();
    })
    .await;
}

#[tokio::test]
async fn a_large_chunk_arrives_whole() {
    local(async {
        let (mut client, destination, _service) = scene().await;
        let small = 64 * 1024;
        let serving = spawn_local(async move {
            let mut destination = destination.await.unwrap();
            head(&mut destination).await;
            let chunk = format!("{LARGE:x}\r\n").len() + LARGE + 2 + "0\r\n\r\n".len();
            content(&mut destination, chunk).await;
            let answer = answer(small);
            destination.write_all(answer.as_bytes()).await.unwrap();
            destination.write_all(&body(small)).await.unwrap();
        });
        let chunked = b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
        client.write_all(chunked).await.unwrap();
        let size = format!("{LARGE:x}\r\n");
        client.write_all(size.as_bytes()).await.unwrap();
        client.write_all(&body(LARGE)).await.unwrap();
        client.write_all(b"\r\n0\r\n\r\n").await.unwrap();
        head(&mut client).await;
        assert!(content(&mut client, small).await == body(small));
        serving.await.unwrap();
    })
    .await;
}

#[tokio::test]
async fn a_client_that_goes_takes_its_request_with_it() {
    local(async {
        let (mut client, destination, service) = scene().await;
        client.write_all(post(LARGE).as_bytes()).await.unwrap();
        client.write_all(&body(LARGE / 2)).await.unwrap();
        let mut destination = destination.await.unwrap();
        head(&mut destination).await;
        drop(client);
        let mut came = Vec::new();
        // By a reset or an end, but not by what would make it whole.
        let _ = destination.read_to_end(&mut came).await;
        assert!(came == body(LARGE / 2)[..came.len()] && !came.is_empty());
        let generation = service.shared().load_full();
        let state = generation.cluster(ClusterIndex(0));
        assert_eq!(state.destinations()[0].in_flight(), 0);
    })
    .await;
}

#[tokio::test]
async fn a_response_that_breaks_off_breaks_off_at_the_client() {
    local(async {
        let (mut client, destination, _service) = scene().await;
        let get = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n";
        client.write_all(get).await.unwrap();
        let mut destination = destination.await.unwrap();
        head(&mut destination).await;
        let begun = answer(LARGE);
        destination.write_all(begun.as_bytes()).await.unwrap();
        destination.write_all(&body(LARGE / 2)).await.unwrap();
        drop(destination);
        head(&mut client).await;
        let mut came = Vec::new();
        let ended = client.read_to_end(&mut came).await;
        assert!(came == body(LARGE / 2)[..came.len()], "what came is right");
        assert!(ended.is_err() || came.len() == LARGE / 2, "and not more");
    })
    .await;
}

/// Both directions at once, neither of which waits for the other.
#[tokio::test]
async fn a_response_that_begins_before_its_request_ends_goes_on_beside_it() {
    local(async {
        let (client, destination, _service) = scene().await;
        let (mut reader, mut writer) = client.into_split();
        let sending = spawn_local(async move {
            writer.write_all(post(LARGE).as_bytes()).await.unwrap();
            writer.write_all(&body(LARGE)).await.unwrap();
            writer
        });
        let mut destination = destination.await.unwrap();
        head(&mut destination).await;
        let begun = answer(LARGE);
        destination.write_all(begun.as_bytes()).await.unwrap();
        let (mut from, mut to) = destination.split();
        let both = async { tokio::io::copy(&mut (&mut from).take(LARGE as u64), &mut to).await };
        let reading = async {
            head(&mut reader).await;
            assert!(content(&mut reader, LARGE).await == body(LARGE));
        };
        let (copied, ()) = tokio::join!(both, reading);
        assert_eq!(copied.unwrap(), LARGE as u64);
        sending.await.unwrap();
    })
    .await;
}

#[cfg(target_os = "linux")]
mod early {
    use testkit::time::eventually;

    use super::*;
    use crate::server::Limits;
    use crate::server::engine::tests::scene::{serve_by, worker};
    use crate::server::handler::{ProxyHandler, ServiceHandler};
    use crate::stream::LateSocket;

    const GET: &str = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";

    /// A client that has sent a request before anybody looked at its socket, and that socket.
    async fn client(request: &str) -> (TcpStream, LateSocket) {
        let near = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let mut client = TcpStream::connect(near.local_addr().unwrap())
            .await
            .unwrap();
        client.write_all(request.as_bytes()).await.unwrap();
        let accepted = near.accept().unwrap().0;
        accepted.set_nonblocking(true).unwrap();
        (client, LateSocket::new(accepted))
    }

    #[tokio::test]
    async fn a_new_client_that_leaves_before_its_answer_is_noticed() {
        local(async {
            let (proxy, destination) = destination().await;
            let (client, accepted) = client(GET).await;
            serve_over(accepted, proxy);
            let mut destination = destination.await.unwrap();
            head(&mut destination).await;
            drop(client);
            // The request is given up, and its connection with it.
            let end = destination.read(&mut [0]).await;
            assert_eq!(end.unwrap_or_default(), 0);
        })
        .await;
    }

    /// A reset would take what has not left yet with it (RFC 9112 section 9.6).
    #[tokio::test]
    async fn what_a_new_client_sends_before_the_end_does_not_cut_its_response() {
        // More than the client's system takes before it reads, and less than the server's.
        const LENGTH: usize = 400_000;
        let post = "POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 2\r\n\r\nhi";
        // Either the client asks for the end, and sends an empty line behind its body (RFC 9112 section 2.2), or the
        // server decides.
        for (request, further) in [(post, "\r\n"), (GET, GET)] {
            for is_typed in [false, true] {
                local(async {
                    let (service, destination) = destination().await;
                    // The connection to the destination is there already: nothing is waited for but the answer.
                    let (mut first, accepted) = client(GET).await;
                    serve_over(accepted, service.clone());
                    let mut destination = destination.await.unwrap();
                    head(&mut destination).await;
                    destination.write_all(answer(0).as_bytes()).await.unwrap();
                    head(&mut first).await;

                    let limits = Limits {
                        requests_per_connection: 1,
                        ..Limits::default()
                    };
                    let (worker, metrics) = worker(limits, None);
                    let (mut client, accepted) = client(request).await;
                    match is_typed {
                        false => serve_by(accepted, ProxyHandler::new(service.clone()), worker),
                        true => serve_by(accepted, ServiceHandler(service.clone()), worker),
                    }
                    head(&mut destination).await;
                    client.write_all(further.as_bytes()).await.unwrap();
                    let begun = answer(LENGTH);
                    destination.write_all(begun.as_bytes()).await.unwrap();
                    destination.write_all(&body(LENGTH)).await.unwrap();
                    // From then on the server has closed, or waits for the client.
                    eventually("the end of the request", async || {
                        let counts = metrics.counts();
                        (counts.requests, counts.active_requests) == (1, 0)
                    })
                    .await;
                    head(&mut client).await;
                    let came = content(&mut client, LENGTH).await;
                    assert!(came == body(LENGTH), "{request}");
                })
                .await;
            }
        }
    }
}
