//! Responses mean the same from destinations of both versions of HTTP, to clients of both.

use std::time::{Duration, Instant};

use http::Response;
use proxy_runtime::Cause;
use serde_json::json;
use testkit::body;
use testkit::faults;
use testkit::origin::{Origin, Protocols};
use testkit::raw::frame::Frame;
use testkit::raw::{RawClient, RawOrigin};
use testkit::time::{eventually, guarded};

use crate::server::stops::{failures, start_whole, start_with};
use crate::server::streams::{Client, get};

/// The shortest time after which anything else would have ended the response: the default window of data rates.
const DEFAULT_WINDOW: Duration = Duration::from_secs(30);

/// A response, in HTTP/1.1 and as frames, if both versions can say it.
struct Said {
    name: &'static str,
    method: &'static str,
    http1: Option<String>,
    http2: Option<Vec<Frame>>,
    expected: Expected,
}

#[derive(Clone, Debug, PartialEq)]
enum Expected {
    /// Status, content, and the names of trailers.
    Whole(u16, &'static str, &'static [&'static str]),
    /// An error of the proxy, with this cause.
    Failed(Cause),
    /// The response ends early, with this cause.
    Cut(Cause),
}

const STATUS: (&str, &str) = (":status", "200");

fn said() -> Vec<Said> {
    let chunked = |trailers: &str| {
        let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
        Some(format!("{head}2\r\nok\r\n0\r\n{trailers}\r\n"))
    };
    let with_trailers = |trailers: &[(&str, &str)]| {
        Some(vec![
            Frame::headers(1, &[STATUS], false),
            Frame::data(1, "ok", false),
            Frame::headers(1, trailers, true),
        ])
    };
    let many: Vec<_> = (0..1_100)
        .map(|i| (format!("x-{i}"), "1".to_owned()))
        .collect();
    let lines: String = many
        .iter()
        .map(|(name, value)| format!("{name}: {value}\r\n"))
        .collect();
    let mut fields = vec![STATUS];
    fields.extend(many.iter().map(|(name, value)| (&**name, &**value)));
    let of_length = |length, content: &str| {
        Some(vec![
            Frame::headers(1, &[STATUS, ("content-length", length)], false),
            Frame::data(1, content, true),
        ])
    };
    let get = |name, http1, http2, expected| Said {
        name,
        method: "GET",
        http1,
        http2,
        expected,
    };
    vec![
        get(
            "a length in trailers",
            chunked("Content-Length: 5\r\nX-Sum: 1\r\n"),
            with_trailers(&[("content-length", "5"), ("x-sum", "1")]),
            Expected::Whole(200, "ok", &["x-sum"]),
        ),
        get(
            "a host in trailers",
            chunked("Host: h\r\n"),
            with_trailers(&[("host", "h")]),
            Expected::Whole(200, "ok", &[]),
        ),
        get(
            "a coding in trailers",
            chunked("Transfer-Encoding: chunked\r\nX-Sum: 1\r\n"),
            None,
            Expected::Whole(200, "ok", &["x-sum"]),
        ),
        get(
            "too many fields",
            Some(format!(
                "HTTP/1.1 200 OK\r\n{lines}Content-Length: 0\r\n\r\n"
            )),
            Some(vec![Frame::headers(1, &fields, true)]),
            Expected::Failed(Cause::MalformedResponse),
        ),
        get(
            "a switch that nobody asked for",
            Some(
                "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n"
                    .to_owned(),
            ),
            Some(vec![Frame::headers(1, &[(":status", "101")], false)]),
            Expected::Failed(Cause::MalformedResponse),
        ),
        get(
            "more than was said",
            None,
            of_length("2", "longer"),
            Expected::Cut(Cause::MalformedResponse),
        ),
        get(
            "less than was said",
            None,
            of_length("10", "no"),
            Expected::Cut(Cause::MalformedResponse),
        ),
        get(
            "no chunk",
            Some(
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\nno chunk"
                    .to_owned(),
            ),
            None,
            Expected::Cut(Cause::MalformedResponse),
        ),
        Said {
            method: "HEAD",
            ..get(
                "content behind HEAD",
                Some("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nno".to_owned()),
                Some(vec![
                    Frame::headers(1, &[STATUS, ("content-length", "2")], false),
                    Frame::data(1, "no", true),
                ]),
                Expected::Whole(200, "", &[]),
            )
        },
    ]
}

/// Returns the response that a client of HTTP/1.1 gets. `None`: it is cut.
async fn http1(address: std::net::SocketAddr, method: &str) -> Option<(u16, Vec<u8>, Vec<String>)> {
    let mut client = RawClient::connect(address).await.unwrap();
    let request =
        format!("{method} / HTTP/1.1\r\nHost: h\r\nTE: trailers\r\nConnection: TE\r\n\r\n");
    client.write_all(request).await.unwrap();
    let answer = guarded("a response", client.read_response_to(method))
        .await
        .ok()?;
    let trailers = answer.trailers.iter().map(|(name, _)| name.to_lowercase());
    Some((answer.status(), answer.body.clone(), trailers.collect()))
}

async fn http2(address: std::net::SocketAddr, method: &str) -> Option<(u16, Vec<u8>, Vec<String>)> {
    let mut client = Client::connect(address).await;
    let mut request = get("/");
    *request.method_mut() = method.parse().unwrap();
    let answer = guarded("a response", client.send(request, None, None))
        .await
        .ok()?;
    let trailers = answer.trailers.keys().map(|name| name.as_str().to_owned());
    Some((answer.status, answer.body, trailers.collect()))
}

#[tokio::test]
async fn what_a_destination_says_means_the_same() {
    for said in said() {
        let frames = said.http2.clone();
        let origins = [
            ("1.1", said.http1.clone().map(RawOrigin::answering)),
            (
                "2",
                frames.map(|frames| {
                    faults::h2::answers(move |stream| {
                        let mut frames = frames.clone();
                        frames.iter_mut().for_each(|frame| frame.stream = stream);
                        frames
                    })
                }),
            ),
        ];
        for (version, origin) in origins {
            let Some(origin) = origin else { continue };
            for is_typed in [false, true] {
                let request = json!({ "Version": version, "VersionPolicy": "RequestVersionExact" });
                let (proxy, server, lines) = start_with(&origin.url(), is_typed, &request);
                let address = server.local_addrs()[0];
                let seen = [
                    http1(address, said.method).await,
                    http2(address, said.method).await,
                ];
                let case = format!("{}, HTTP/{version}, typed: {is_typed}", said.name);
                eventually(&case, async || lines.0.lock().len() == 2).await;
                let causes: Vec<_> = lines.0.lock().iter().map(|line| line.3).collect();
                for seen in seen {
                    match said.expected {
                        Expected::Whole(status, content, trailers) => {
                            let (seen, body, names) = seen.unwrap_or_else(|| panic!("{case}: cut"));
                            assert_eq!((seen, &*body), (status, content.as_bytes()), "{case}");
                            assert_eq!(names, trailers, "{case}");
                        }
                        Expected::Failed(_) => assert_eq!(seen.unwrap().0, 502, "{case}"),
                        // Where that is known with the head, it is an error.
                        Expected::Cut(_) => {
                            assert!(seen.is_none_or(|seen| seen.0 == 502), "{case}")
                        }
                    }
                }
                match said.expected {
                    Expected::Whole(..) => assert_eq!(causes, [None, None], "{case}"),
                    Expected::Failed(cause) | Expected::Cut(cause) => {
                        assert_eq!(causes, [Some(cause); 2], "{case}");
                        eventually(&case, async || failures(&proxy, cause).len() == 1).await;
                    }
                }
            }
        }
    }
}

fn exactly(version: &str) -> serde_json::Value {
    json!({ "Version": version, "VersionPolicy": "RequestVersionExact" })
}

/// A client that does not read is disconnected when the time for the whole response is over.
#[tokio::test]
async fn a_slow_client_is_cut_in_time_in_front_of_both() {
    for protocols in [Protocols::Http1, Protocols::Http2] {
        let version = if protocols == Protocols::Http1 {
            "1.1"
        } else {
            "2"
        };
        let origin = Origin::builder().protocols(protocols);
        let origin = origin.start(|_: http::Request<_>| async {
            Response::new(body::full(vec![b'x'; 50_000_000]))
        });
        for is_typed in [false, true] {
            for is_http2 in [false, true] {
                let case = format!("HTTP/{version}, typed: {is_typed}, stream: {is_http2}");
                let (proxy, server, lines) =
                    start_whole(&origin.url(), is_typed, &exactly(version));
                let address = server.local_addrs()[0];
                let begin = Instant::now();
                let mut http1 = RawClient::connect(address).await.unwrap();
                let http2 = Client::connect(address).await;
                // Held, and not read.
                let _response = match is_http2 {
                    false => {
                        let request = "GET / HTTP/1.1\r\nHost: h\r\n\r\n";
                        http1.write_all(request).await.unwrap();
                        None
                    }
                    true => {
                        let mut sender = http2.sender.clone().ready().await.unwrap();
                        let (response, _) = sender.send_request(get("/"), true).unwrap();
                        Some(response.await.unwrap())
                    }
                };
                eventually(&case, async || lines.0.lock().len() == 1).await;
                let took = begin.elapsed();
                let range = Duration::from_millis(900)..DEFAULT_WINDOW;
                assert!(range.contains(&took), "{case}: {took:?}");
                let line = lines.0.lock()[0];
                assert_eq!(
                    (line.0, line.3),
                    (Some(200), Some(Cause::ClientTooSlow)),
                    "{case}"
                );
                let counted = async || failures(&proxy, Cause::ClientTooSlow).len() == 1;
                eventually(&case, counted).await;
                drop(http2.sender);
            }
        }
    }
}

/// A client that reads everything at once is not the one that is waited for.
#[tokio::test]
async fn a_slow_destination_is_cut_in_time_in_front_of_both() {
    for protocols in [Protocols::Http1, Protocols::Http2] {
        let version = if protocols == Protocols::Http1 {
            "1.1"
        } else {
            "2"
        };
        let origin = Origin::builder().protocols(protocols);
        // A part every 20 ms, without an end.
        let origin = origin.start(|_: http::Request<_>| async {
            let (mut send, response) = body::channel(1);
            tokio::spawn(async move {
                while send.send_data("part ".into()).await.is_ok() {
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
            });
            Response::new(response)
        });
        for is_typed in [false, true] {
            let (proxy, server, lines) = start_whole(&origin.url(), is_typed, &exactly(version));
            let address = server.local_addrs()[0];
            let begin = Instant::now();
            // Each gets parts until it is cut.
            let (one, two) = tokio::join!(http1(address, "GET"), http2(address, "GET"));
            let took = begin.elapsed();
            let case = format!("HTTP/{version}, typed: {is_typed}");
            assert!(one.is_none() && two.is_none(), "{case}: {one:?} {two:?}");
            let range = Duration::from_millis(900)..DEFAULT_WINDOW;
            assert!(range.contains(&took), "{case}: {took:?}");
            eventually(&case, async || lines.0.lock().len() == 2).await;
            for line in &*lines.0.lock() {
                let seen = (line.0, line.3);
                assert_eq!(seen, (Some(200), Some(Cause::BodyTimeout)), "{case}");
            }
            let counted = || failures(&proxy, Cause::BodyTimeout);
            eventually(&case, async || {
                counted().first().is_some_and(|line| line.ends_with(" 2"))
            })
            .await;
            let counted = counted();
            assert_eq!(counted.len(), 1, "{case}: {counted:?}");
            let is_of_destination = counted[0].contains("side=\"destination\"");
            assert!(
                is_of_destination && counted[0].ends_with(" 2"),
                "{case}: {counted:?}"
            );
        }
    }
}
