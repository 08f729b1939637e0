//! The exemption from minimum data rates: for gRPC clients, and not for others that claim to be
//! one.

use std::net::SocketAddr;
use std::time::Duration;

use proxy_runtime::server::{DataRate, Limits};
use serde_json::json;
use testkit::raw::RawClient;

use crate::changed;
use crate::server::ways::{OK, as_bytes_within, origin, over_types_within, proxy};

const WINDOW: Duration = Duration::from_millis(100);

fn limits() -> Limits {
    changed(|limits: &mut Limits| limits.data_rate = Some(DataRate::new(240, WINDOW)))
}

/// The response to a client that is silent after the first byte of its upload.
async fn silent_over_http1(address: SocketAddr, fields: &str) -> u16 {
    let mut client = RawClient::connect(address).await.unwrap();
    let head = "POST / HTTP/1.1\r\nHost: t.example\r\nTransfer-Encoding: chunked\r\n";
    let request = format!("{head}{fields}\r\n2\r\nx");
    client.write_all(request).await.unwrap();
    client.read_response().await.unwrap().status()
}

#[tokio::test]
async fn over_http1_nobody_may_be_silent() {
    let origin = origin(OK);
    let proxy = proxy(&origin, &json!({}), "");
    for serve in [as_bytes_within, over_types_within] {
        let server = serve(&proxy, limits());
        for fields in [
            "",
            "Content-Type: application/grpc\r\n",
            "Content-Type: application/grpc+proto\r\nTE: trailers\r\nConnection: TE\r\n",
        ] {
            let status = silent_over_http1(server.local_addrs()[0], fields).await;
            assert_eq!(status, 408, "{fields}");
        }
    }
}

/// The response to a client that sends the rest of its upload only after several windows, or never,
/// if it `may_not`.
#[cfg(feature = "http2")]
async fn late_over_http2(
    address: SocketAddr,
    fields: &[(&'static str, &'static str)],
    may_not: bool,
) -> u16 {
    use bytes::Bytes;
    use http::{HeaderName, HeaderValue};

    let mut client = crate::server::streams::Client::connect(address).await;
    let mut request = crate::server::streams::post("/");
    for (name, value) in fields {
        let name = HeaderName::from_static(name);
        let value = HeaderValue::from_static(value);
        request.headers_mut().append(name, value);
    }
    let (response, mut upload) = client.begin(request).await;
    upload.send_data(Bytes::from_static(b"x"), false).unwrap();
    if !may_not {
        tokio::time::sleep(4 * WINDOW).await;
        upload.send_data(Bytes::from_static(b"y"), true).unwrap();
    }
    let response = testkit::time::guarded("an answer", response).await;
    response.unwrap().status().as_u16()
}

#[cfg(feature = "http2")]
#[tokio::test]
async fn over_http2_calls_of_grpc_may_be_silent() {
    let origin = origin(OK);
    let proxy = proxy(&origin, &json!({}), "");
    for serve in [as_bytes_within, over_types_within] {
        let server = serve(&proxy, limits());
        for (fields, status) in [
            (
                &[("content-type", "application/grpc"), ("te", "trailers")][..],
                200,
            ),
            (
                &[
                    ("content-type", "application/grpc+proto"),
                    ("te", "trailers"),
                ],
                200,
            ),
            (&[("content-type", "application/grpc")], 408),
            (
                &[("content-type", "application/grpc-web"), ("te", "trailers")],
                408,
            ),
            (&[("te", "trailers")], 408),
        ] {
            let given = late_over_http2(server.local_addrs()[0], fields, status == 408).await;
            assert_eq!(given, status, "{fields:?}");
        }
    }
}

/// "gRPC over HTTP2": local replies have a gRPC status on every path.
#[cfg(feature = "http2")]
#[tokio::test]
async fn what_the_proxy_answers_itself_is_in_the_words_of_grpc() {
    use bytes::Bytes;
    use http::{HeaderName, HeaderValue};

    use crate::server::streams::{Client, get, post};

    // It closes each connection without a response.
    let origin = testkit::raw::RawOrigin::script(|mut connection| async move {
        connection.close();
        Ok(())
    });
    let proxy = proxy(
        &origin,
        &json!({ "Match": { "Path": "/known/{**rest}" } }),
        "",
    );
    for serve in [as_bytes_within, over_types_within] {
        let mut limits = limits();
        limits.body_bytes = Some(3);
        let server = serve(&proxy, limits);
        let mut client = Client::connect(server.local_addrs()[0]).await;
        for (path, length, status, message) in [
            ("/known/service", None, "14", "502 Bad Gateway"),
            ("/unknown", None, "12", "404 Not Found"),
            ("/known/..;/service", None, "13", "400 Bad Request"),
            ("/known/large", Some("4"), "8", "413 Payload Too Large"),
        ] {
            let mut call = post(path);
            let fields = [
                ("content-type", "application/grpc+proto"),
                ("te", "trailers"),
            ];
            for (name, value) in fields
                .into_iter()
                .chain(length.map(|l| ("content-length", l)))
            {
                let name = HeaderName::from_static(name);
                let value = HeaderValue::from_static(value);
                call.headers_mut().insert(name, value);
            }
            let body = length.map(|_| Bytes::from_static(b"body"));
            let answer = testkit::time::guarded(path, client.send(call, body, None)).await;
            let answer = answer.unwrap();
            assert_eq!(answer.status, 200, "{path}");
            assert_eq!(answer.fields["grpc-status"], status, "{path}");
            assert_eq!(answer.fields["grpc-message"], message, "{path}");
            assert_eq!(answer.fields["content-type"], "application/grpc");
            assert_eq!(answer.body, b"", "{path}");
        }
        // Other requests have an HTTP status.
        let answer = client.send(get("/unknown"), None, None).await.unwrap();
        assert_eq!(answer.status, 404);
        assert!(!answer.fields.contains_key("grpc-status"));
    }
}
