//! Invalid and ambiguous requests, none of which may reach the service as sent.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use proxy_runtime::server::Limits;
use testkit::raw::RawClient;
use testkit::time::eventually;

use crate::server::support::{Handler, serve, status, text};

/// The expected result.
pub(crate) enum Expect {
    /// A response with this status, the end of the connection, and no call of the service.
    Rejected(u16),
    /// The service sees one request.
    Served,
}

use Expect::{Rejected, Served};

/// Request line and Host of a POST, before the bytes of a case.
const POST: &str = "POST /p HTTP/1.1\r\nHost: t.example\r\n";
const GET: &str = "GET /p HTTP/1.1\r\nHost: t.example\r\n";

/// The request hidden in a body, if its length is misread.
const SMUGGLED: &str = "GET /smuggled HTTP/1.1\r\nHost: t.example\r\n\r\n";

fn post(rest: &str) -> Vec<u8> {
    format!("{POST}{rest}").into_bytes()
}

fn get(rest: &str) -> Vec<u8> {
    format!("{GET}{rest}").into_bytes()
}

/// A chunked body between two pieces of header.
fn chunked(field: &str) -> Vec<u8> {
    post(&format!("{field}\r\n\r\n0\r\n\r\n{SMUGGLED}"))
}

/// A complete request line with target `target`.
fn target(target: &str) -> Vec<u8> {
    format!("GET {target} HTTP/1.1\r\nHost: t.example\r\n\r\n").into_bytes()
}

fn host(field: &str) -> Vec<u8> {
    format!("GET /p HTTP/1.1\r\n{field}\r\n\r\n").into_bytes()
}

fn line(line: &str) -> Vec<u8> {
    format!("{line}\r\nHost: t.example\r\n\r\n").into_bytes()
}

pub(crate) fn length_cases() -> Vec<(&'static str, Vec<u8>, Expect)> {
    vec![
        (
            "cl-dup-diff",
            post("Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello"),
            Rejected(400),
        ),
        (
            "cl-list-same",
            post("Content-Length: 5, 5\r\n\r\nhello"),
            Rejected(400),
        ),
        (
            "cl-list-diff",
            post("Content-Length: 5, 6\r\n\r\nhello"),
            Rejected(400),
        ),
        (
            "cl-plus",
            post("Content-Length: +5\r\n\r\nhello"),
            Rejected(400),
        ),
        (
            "cl-minus",
            post("Content-Length: -5\r\n\r\nhello"),
            Rejected(400),
        ),
        (
            "cl-hex",
            post("Content-Length: 0x5\r\n\r\nhello"),
            Rejected(400),
        ),
        (
            "cl-empty",
            post("Content-Length:\r\n\r\nhello"),
            Rejected(400),
        ),
        (
            "cl-alpha",
            post("Content-Length: 5a\r\n\r\nhello"),
            Rejected(400),
        ),
        (
            "cl-wrap64",
            post("Content-Length: 18446744073709551621\r\n\r\nhello"),
            Rejected(400),
        ),
        (
            "te-xchunked",
            chunked("Transfer-Encoding: xchunked"),
            Rejected(501),
        ),
        (
            "te-list-id",
            chunked("Transfer-Encoding: chunked, identity"),
            Rejected(400),
        ),
        (
            "te-twice-list",
            chunked("Transfer-Encoding: chunked, chunked"),
            Rejected(400),
        ),
        (
            "te-dup",
            chunked("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked"),
            Rejected(400),
        ),
        (
            "te-vt",
            chunked("Transfer-Encoding: \x0bchunked"),
            Rejected(400),
        ),
        (
            "te-nul",
            chunked("Transfer-Encoding: chunked\0"),
            Rejected(400),
        ),
        (
            "te-param",
            chunked("Transfer-Encoding: chunked;q=1"),
            Rejected(400),
        ),
        (
            "te-comma-end",
            chunked("Transfer-Encoding: chunked,"),
            Rejected(400),
        ),
        (
            "te-gzip-chunked",
            post("Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n"),
            Rejected(501),
        ),
        (
            "te-under",
            post("Content-Length: 5\r\nTransfer_Encoding: chunked\r\n\r\nhello"),
            Rejected(400),
        ),
        (
            "te-http10",
            b"POST /p HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n".to_vec(),
            Rejected(400),
        ),
        (
            "clte",
            chunked("Content-Length: 5\r\nTransfer-Encoding: chunked"),
            Rejected(400),
        ),
        (
            "tecl",
            chunked("Transfer-Encoding: chunked\r\nContent-Length: 5"),
            Rejected(400),
        ),
        (
            "cl-dup-same",
            post("Content-Length: 5\r\nContent-Length: 5\r\n\r\nhello"),
            Rejected(400),
        ),
        (
            "ch-lf",
            post("Transfer-Encoding: chunked\n\r\n0\r\n\r\n"),
            Rejected(400),
        ),
        ("cl-ok", post("Content-Length: 5\r\n\r\nhello"), Served),
        (
            "te-ok",
            post("Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"),
            Served,
        ),
        (
            "ch-ok-ext",
            post("Transfer-Encoding: chunked\r\n\r\n5;a=b\r\nhello\r\n0\r\n\r\n"),
            Served,
        ),
    ]
}

pub(crate) fn head_cases() -> Vec<(&'static str, Vec<u8>, Expect)> {
    vec![
        (
            "lf-only",
            b"GET /p HTTP/1.1\nHost: t.example\n\n".to_vec(),
            Rejected(400),
        ),
        ("lf-line", get("X: y\n\r\n"), Rejected(400)),
        ("cr-value", get("X: y\rz\r\n\r\n"), Rejected(400)),
        ("ctl-value", get("X: a\x01b\r\n\r\n"), Rejected(400)),
        ("del-value", get("X: a\x7fb\r\n\r\n"), Rejected(400)),
        ("sp-colon", get("X-A : b\r\n\r\n"), Rejected(400)),
        ("name-empty", get(": b\r\n\r\n"), Rejected(400)),
        ("name-space", get("X A: b\r\n\r\n"), Rejected(400)),
        ("name-paren", get("X(A): b\r\n\r\n"), Rejected(400)),
        ("fold-tab", get("X: a\r\n\tb\r\n\r\n"), Rejected(400)),
        ("sp-many", line("GET  /p  HTTP/1.1"), Rejected(400)),
        ("sp-tab", line("GET\t/p\tHTTP/1.1"), Rejected(400)),
        ("v-none", line("GET /p"), Rejected(400)),
        ("v-20", line("GET /p HTTP/2.0"), Rejected(505)),
        ("v-110", line("GET /p HTTP/1.10"), Rejected(400)),
        ("v-junk", line("GET /p HTTP/1.1x"), Rejected(400)),
        ("v-other", line("GET /p RTSP/1.0"), Rejected(400)),
        ("m-empty", line(" /p HTTP/1.1"), Rejected(400)),
        (
            "m-long",
            line(&format!("{} /p HTTP/1.1", "M".repeat(9000))),
            Rejected(501),
        ),
        ("u-space", target("/p a"), Rejected(400)),
        ("u-ctl", target("/p\x01"), Rejected(400)),
        ("nul-target", target("/p\0x"), Rejected(400)),
        ("u-fragment", target("/p#frag"), Rejected(400)),
        ("u-noslash", target("x/p"), Rejected(400)),
        ("u-authority", target("t.example:80"), Rejected(400)),
        (
            "connect",
            line("CONNECT t.example:443 HTTP/1.1"),
            Rejected(405),
        ),
        ("connect-path", line("CONNECT /p HTTP/1.1"), Rejected(405)),
        ("trace", line("TRACE /p HTTP/1.1"), Rejected(405)),
        ("path-dot-param", target("/pub/..;/adm"), Rejected(400)),
        ("path-pct-nul", target("/p%00"), Rejected(400)),
        ("path-pct-bad", target("/p%zz"), Rejected(400)),
        ("host-none", host("X: y"), Rejected(400)),
        (
            "host-dup",
            host("Host: t.example\r\nHost: t.example"),
            Rejected(400),
        ),
        (
            "host-dup-diff",
            host("Host: t.example\r\nHost: evil.example"),
            Rejected(400),
        ),
        ("host-empty", host("Host:"), Rejected(400)),
        ("host-userinfo", host("Host: u:p@t.example"), Rejected(400)),
        ("host-space", host("Host: t.ex ample"), Rejected(400)),
        ("host-path", host("Host: t.example/x"), Rejected(400)),
        ("host-v6-open", host("Host: [::1"), Rejected(400)),
        (
            "host-list",
            host("Host: t.example, evil.example"),
            Rejected(400),
        ),
        ("host-port-text", host("Host: t.example:abc"), Rejected(400)),
        (
            "ex-unknown",
            post("Expect: foo\r\nContent-Length: 5\r\n\r\nhello"),
            Rejected(417),
        ),
        (
            "ex-obf",
            post("Expect: y 100-continue\r\nContent-Length: 5\r\n\r\nhello"),
            Rejected(417),
        ),
        (
            "up-body",
            post("Connection: Upgrade\r\nUpgrade: websocket\r\nContent-Length: 5\r\n\r\nhello"),
            Rejected(400),
        ),
        (
            "xff-under",
            get("X_Forwarded_For: 6.6.6.6\r\n\r\n"),
            Rejected(400),
        ),
        ("m-lower", line("get /p HTTP/1.1"), Served),
        ("opt-star", line("OPTIONS * HTTP/1.1"), Served),
        ("path-dbl-pct", target("/pub/%252e%252e/adm"), Served),
        ("host-v6", host("Host: [::1]:80"), Served),
        ("http10", b"GET /p HTTP/1.0\r\n\r\n".to_vec(), Served),
    ]
}

#[tokio::test]
async fn what_can_be_read_in_two_ways_is_rejected() {
    let calls = Arc::new(AtomicUsize::new(0));
    let handler = Handler::new({
        let calls = calls.clone();
        move |request| {
            calls.fetch_add(1, SeqCst);
            async move {
                assert_ne!(request.uri().path(), "/smuggled");
                http_body_util::BodyExt::collect(request.into_body())
                    .await
                    .unwrap();
                text("served")
            }
        }
    });
    let (_server, address) = serve(handler, Limits::default());
    let mut wrong = Vec::new();
    let cases: Vec<_> = length_cases().into_iter().chain(head_cases()).collect();
    let documented = concat!(env!("CARGO_MANIFEST_DIR"), "/../SECURITY.md");
    let documented = std::fs::read_to_string(documented).unwrap();
    let row = format!("| HTTP/1.1, heads and lengths | {} |", cases.len());
    assert!(
        documented.contains(&row),
        "SECURITY.md does not have {row:?}"
    );
    for (id, bytes, expect) in cases {
        let before = calls.load(SeqCst);
        let mut client = RawClient::connect(address).await.unwrap();
        client.write_all(&bytes).await.unwrap();
        let response = match client.read_response().await {
            Ok(response) => response,
            Err(error) => {
                wrong.push(format!("{id}: {error}"));
                continue;
            }
        };
        let served = calls.load(SeqCst) - before;
        let (status, calls) = match expect {
            Rejected(status) => (status, 0),
            Served => (200, 1),
        };
        if (response.status(), served) != (status, calls) {
            wrong.push(format!("{id}: {} after {served} calls", response.status()));
        }
        if status != 200 {
            client.assert_closed().await;
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Errors after the head are found while reading: the service sees the error, and the connection
/// ends.
#[tokio::test]
async fn chunks_that_can_be_read_in_two_ways_break_the_body_off() {
    let handler = Handler::new(|request| async {
        match http_body_util::BodyExt::collect(request.into_body()).await {
            Ok(_) => text("served"),
            Err(error) => status(error.status().as_u16()),
        }
    });
    let (server, address) = serve(handler, Limits::default());
    let cases = [
        ("ch-lf", "5\nhello\r\n0\r\n\r\n"),
        ("ch-size-space", "5 \r\nhello\r\n0\r\n\r\n"),
        ("ch-size-hex", "0x5\r\nhello\r\n0\r\n\r\n"),
        ("ch-size-wrap", "10000000000000005\r\nhello\r\n0\r\n\r\n"),
        ("ch-long", "5\r\nhelloo\r\n0\r\n\r\n"),
        (
            "ch-trailer-length",
            "5\r\nhello\r\n0\r\nContent-Length: 5\r\n\r\n",
        ),
    ];
    for (id, chunks) in cases {
        let mut client = RawClient::connect(address).await.unwrap();
        let bytes = post(&format!(
            "Transfer-Encoding: chunked\r\n\r\n{chunks}{SMUGGLED}"
        ));
        client.write_all(bytes).await.unwrap();
        assert_eq!(client.read_response().await.unwrap().status(), 400, "{id}");
        client.assert_closed().await;
    }
    eventually("each is counted", async || {
        server.metrics().counts().malformed_requests == 6
    })
    .await;
}

#[tokio::test]
async fn targets_and_hosts_are_brought_into_one_form() {
    let (_server, address) = serve(Handler::echo(), Limits::default());
    for (id, target_sent, expected) in [
        (
            "abs-form",
            "http://other.example/p?q",
            "GET /p?q other.example 0",
        ),
        (
            "abs-form-bare",
            "http://other.example:81",
            "GET / other.example:81 0",
        ),
        ("path-dotdot", "/pub/../adm", "GET /adm t.example 0"),
        ("path-pct-dot", "/pub/%2e%2e/adm", "GET /adm t.example 0"),
        ("path-pct-slash", "/pub%2fadm", "GET /pub%2fadm t.example 0"),
        (
            "path-pct-bs",
            "/pub%5c..%5cadm",
            "GET /pub%5c..%5cadm t.example 0",
        ),
        ("path-slashes", "//adm", "GET //adm t.example 0"),
    ] {
        let response = RawClient::exchange(address, target(target_sent))
            .await
            .unwrap();
        assert_eq!(response.text(), expected, "{id}");
    }
}

#[tokio::test]
async fn a_body_is_asked_for_when_it_is_read() {
    let (_server, address) = serve(Handler::echo(), Limits::default());
    let mut client = RawClient::connect(address).await.unwrap();
    client
        .write_all(post("Expect: 100-continue\r\nContent-Length: 5\r\n\r\n"))
        .await
        .unwrap();
    let interim = client.read_response_head().await.unwrap();
    assert_eq!(interim.status, 100, "ex-100");
    client.write_all("hello").await.unwrap();
    let response = client.read_response().await.unwrap();
    assert_eq!(response.text(), "POST /p t.example 5");
}

#[tokio::test]
async fn pipelined_requests_are_answered_in_order() {
    let (_server, address) = serve(Handler::echo(), Limits::default());
    let mut client = RawClient::connect(address).await.unwrap();
    client
        .write_all([target("/1"), target("/2")].concat())
        .await
        .unwrap();
    for expected in ["GET /1 t.example 0", "GET /2 t.example 0"] {
        assert_eq!(
            client.read_response().await.unwrap().text(),
            expected,
            "pipeline"
        );
    }
}
