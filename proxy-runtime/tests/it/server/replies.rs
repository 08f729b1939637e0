//! Routes that answer their requests themselves, over both versions of HTTP.

use std::num::NonZeroUsize;
use std::sync::Arc;

use parking_lot::Mutex;
use proxy_runtime::proxy_model::config::ProxyConfig;
use proxy_runtime::proxy_model::{CompileOptions, Snapshot};
use proxy_runtime::server::{AccessLogSink, AccessRecord, Listener, Server, ServerHandle};
use proxy_runtime::{Cause, Proxy};
use testkit::raw::RawClient;
use testkit::time::{eventually, guarded};

use crate::server::support::loopback;
use crate::server::ways::Disguised;

const ROUTES: &str = r#"{ "Routes": {
    "secure": { "Match": { "Hosts": ["*:80"] }, "Redirect": { "Scheme": "https", "Status": 308 } },
    "moved": { "Match": { "Path": "/old/{**rest}" }, "Redirect": { "Path": "/new/{**rest}" },
        "Transforms": [{ "ResponseHeader": "X-Seen", "Set": "yes", "When": "Always" }] },
    "itself": { "Match": { "Path": "/itself" }, "Redirect": { "Path": "/itself" } },
    "limited": { "Match": { "Path": "/limited" }, "MaxRequestBodySize": 10, "Respond": { "Body": "in" } },
    "strict": { "Match": { "Path": "/strict/{**rest}" }, "StrictPaths": true, "Respond": {} },
    "closed": { "Match": { "Path": "/closed" }, "AuthorizationPolicy": "staff", "Respond": { "Body": "secret" } },
    "away": { "Match": { "Path": "/away" }, "Respond": { "Status": 503, "Body": "Back soon.",
        "Headers": { "Retry-After": "60", "Content-Type": "text/html" } } }
} }"#;

fn serve(is_typed: bool) -> ServerHandle {
    serve_proxy(is_typed).1
}

/// The causes in the lines of an access log.
#[derive(Debug, Default)]
struct Causes(Mutex<Vec<Option<Cause>>>);

impl AccessLogSink for Causes {
    fn log(&self, record: &AccessRecord<'_>) {
        self.0.lock().push(record.cause());
    }
}

fn serve_proxy(is_typed: bool) -> (Proxy, ServerHandle, Arc<Causes>) {
    let options = CompileOptions::default().with_authorization_policies(["staff"]);
    let config = ProxyConfig::from_json(ROUTES).unwrap();
    let (snapshot, _) = Snapshot::compile(config, &options).unwrap();
    let (proxy, _driver) = Proxy::builder().snapshot(snapshot.into()).build().unwrap();
    let served = proxy.clone();
    let server = match is_typed {
        false => Server::for_proxy(&proxy),
        true => Server::builder(move || Disguised(served.service())),
    };
    let causes = Arc::new(Causes::default());
    let sink = Arc::clone(&causes) as Arc<dyn AccessLogSink>;
    let server = server.with_workers(NonZeroUsize::MIN).with_access_log(sink);
    let server = server.with_listener(Listener::http(loopback()));
    (proxy, server.bind().unwrap().start().unwrap(), causes)
}

/// The failures of a proxy by cause.
fn failures(proxy: &Proxy) -> Vec<String> {
    let admin = proxy_runtime::admin::Admin::builder(proxy.clone()).build();
    let request = http::Request::get("/metrics").header("host", "localhost");
    let metrics = admin.respond(&request.body(()).unwrap()).into_body();
    let metrics = String::from_utf8_lossy(&metrics);
    let failures = metrics.lines().filter_map(|line| {
        let (_, cause) = line
            .strip_prefix("proxy_failures_total{")?
            .split_once("cause=\"")?;
        let (cause, rest) = cause.split_once('"')?;
        let (_, count) = rest.split_once("} ")?;
        (count != "0").then(|| format!("{cause} {count}"))
    });
    failures.collect()
}

/// A reply that its client has is no failure, and one that is an error has its cause, once.
#[tokio::test]
async fn each_reply_is_counted_for_what_it_is() {
    for is_typed in [false, true] {
        for (method, host, path, status, cause) in [
            ("HEAD", "h:81", "/away", 503, None),
            ("HEAD", "h:81", "/old/x", 307, None),
            ("GET", "h:81", "/away", 503, None),
            ("HEAD", "h:81", "/nothing", 404, Some(Cause::NoRoute)),
            ("HEAD", "h:81", "/itself", 508, Some(Cause::LoopDetected)),
            ("GET", "h:81", "/itself", 508, Some(Cause::LoopDetected)),
            ("OPTIONS", "h:80", "*", 400, Some(Cause::MalformedRequest)),
            ("GET", "", "/old/x", 400, Some(Cause::MalformedRequest)),
        ] {
            let (proxy, server, causes) = serve_proxy(is_typed);
            let mut client = RawClient::connect(server.local_addrs()[0]).await.unwrap();
            let request = match host {
                "" => format!("{method} {path} HTTP/1.0\r\n\r\n"),
                host => format!("{method} {path} HTTP/1.1\r\nHost: {host}\r\n\r\n"),
            };
            client.write_all(&request).await.unwrap();
            let answer = guarded(path, client.read_response_to(method)).await;
            let answer = answer.unwrap();
            let case = format!("{method} {path} {is_typed}");
            assert_eq!(answer.status(), status, "{case}");
            eventually("the request is logged", async || causes.0.lock().len() == 1).await;
            assert_eq!(causes.0.lock()[0], cause, "{case}");
            let expected = Vec::from_iter(cause.map(|cause| format!("{cause} 1")));
            eventually(format!("{case}: {expected:?}"), async || {
                failures(&proxy) == expected
            })
            .await;
        }
    }
}

/// The response does not depend on a body without a length, of which little is read.
#[tokio::test]
async fn a_body_without_an_end_is_answered_and_given_up() {
    /// More than the 8.25 MiB that the server drops and what the buffers of the system hold. A test of the connection
    /// measures what is dropped, without these buffers.
    const MOST: usize = 64 << 20;
    for is_typed in [false, true] {
        let server = serve(is_typed);
        let mut client = RawClient::connect(server.local_addrs()[0]).await.unwrap();
        let head = "POST /limited HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n";
        let chunk = format!("8000\r\n{}\r\n", "x".repeat(0x8000));
        client.write_all(head.to_owned() + &chunk).await.unwrap();
        let answer = guarded("a response", client.read_response()).await;
        assert_eq!(answer.unwrap().status(), 200, "{is_typed}");
        let mut sent = 0;
        while client.write_all(&chunk).await.is_ok() {
            sent += chunk.len();
            assert!(sent < MOST, "typed: {is_typed}: it is read without an end");
        }
    }
}

#[tokio::test]
async fn a_body_that_is_too_large_is_rejected_though_nobody_reads_it() {
    for is_typed in [false, true] {
        let server = serve(is_typed);
        for (length, status) in [(10, 200), (11, 413)] {
            let mut client = RawClient::connect(server.local_addrs()[0]).await.unwrap();
            let body = "x".repeat(length);
            let head =
                format!("POST /limited HTTP/1.1\r\nHost: h\r\nContent-Length: {length}\r\n\r\n");
            client.write_all(head + &body).await.unwrap();
            let answer = guarded("a response", client.read_response()).await;
            assert_eq!(answer.unwrap().status(), status, "{length} {is_typed}");
        }
    }
}

#[tokio::test]
async fn a_route_answers_without_a_destination() {
    for is_typed in [false, true] {
        let server = serve(is_typed);
        let mut client = RawClient::connect(server.local_addrs()[0]).await.unwrap();
        for (method, host, path, status, header, body) in [
            (
                "GET",
                "h.example",
                "/a?b=c",
                308,
                "location: https://h.example/a?b=c",
                Some("308 Permanent Redirect\n"),
            ),
            (
                "POST",
                "h.example:80",
                "/",
                308,
                "location: https://h.example/",
                Some("308 Permanent Redirect\n"),
            ),
            (
                "GET",
                "h.example:81",
                "/old/x%20y?q",
                307,
                "location: http://h.example:81/new/x%20y?q",
                Some("307 Temporary Redirect\n"),
            ),
            (
                "GET",
                "h.example:81",
                "/old/x",
                307,
                "x-seen: yes",
                Some("307 Temporary Redirect\n"),
            ),
            (
                "HEAD",
                "h.example:81",
                "/away",
                503,
                "retry-after: 60",
                None,
            ),
            (
                "GET",
                "h.example:81",
                "/away",
                503,
                "content-type: text/html",
                Some("Back soon."),
            ),
            (
                "GET",
                "h.example:81",
                "/itself",
                508,
                "content-length: 18",
                Some("508 Loop Detected\n"),
            ),
            (
                "GET",
                "h.example:81",
                "/strict/a",
                200,
                "content-length: 0",
                Some(""),
            ),
            (
                "GET",
                "h.example:81",
                "/strict/a;b",
                400,
                "content-length: 16",
                Some("400 Bad Request\n"),
            ),
            // A protection that nothing honours keeps the response closed.
            (
                "GET",
                "h.example:81",
                "/closed",
                500,
                "content-length: 26",
                Some("500 Internal Server Error\n"),
            ),
        ] {
            let request = format!("{method} {path} HTTP/1.1\r\nHost: {host}\r\n\r\n");
            client.write_all(&request).await.unwrap();
            let answer = guarded(path, client.read_response_to(method))
                .await
                .unwrap();
            let head = String::from_utf8_lossy(&answer.head.bytes).to_lowercase();
            assert_eq!(answer.status(), status, "{path} {head}");
            assert!(
                head.contains(&format!("\r\n{header}\r\n")),
                "{header} in {head}"
            );
            assert_eq!(answer.text(), body.unwrap_or_default(), "{path}");
        }
    }
}

#[cfg(feature = "http2")]
#[tokio::test]
async fn so_it_does_over_streams() {
    use crate::server::streams::{Client, get};

    for is_typed in [false, true] {
        let server = serve(is_typed);
        let mut client = Client::connect(server.local_addrs()[0]).await;
        for (path, status) in [("/away", 503), ("/itself", 508), ("/closed", 500)] {
            let answer = guarded(path, client.send(get(path), None, None)).await;
            assert_eq!(answer.unwrap().status, status, "{path}");
        }
        // A gRPC client gets a status of gRPC from each kind of reply.
        for (path, status) in [
            ("/away", "14"),
            ("/old/x", "2"),
            ("/itself", "13"),
            ("/limited", "2"),
        ] {
            let mut call = get(path);
            *call.method_mut() = http::Method::POST;
            let fields = call.headers_mut();
            fields.insert("content-type", "application/grpc".parse().unwrap());
            fields.insert("te", "trailers".parse().unwrap());
            let answer = guarded(path, client.send(call, None, None)).await.unwrap();
            assert_eq!((answer.status, &*answer.body), (200, &b""[..]), "{path}");
            assert_eq!(answer.fields["grpc-status"], status, "{path}");
        }
    }
}
