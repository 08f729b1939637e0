//! Trailers, and concurrent streams in both directions.

use bytes::Bytes;
use http::header::TE;
use http::{HeaderMap, HeaderValue, Request, Response};
use http_body::{Body, Frame};
use http_body_util::BodyExt;
use serde_json::json;
use testkit::body;
use testkit::faults;
use testkit::origin::{Echo, Incoming, Origin, Protocols};
use testkit::raw::RawClient;
use testkit::time::guarded;

use crate::forward::front::{Front, config_with, config_with_route, h2c};

fn trailer(name: &'static str, value: &'static str) -> HeaderMap {
    HeaderMap::from_iter([(name.parse().unwrap(), HeaderValue::from_static(value))])
}

/// Responds to each message of a gRPC-like stream on arrival, and sends their number at the end.
async fn chat(request: Request<Incoming>) -> Response<body::Body> {
    assert_eq!(request.headers()[TE], "trailers");
    let (mut send, answer) = body::channel(1);
    tokio::spawn(async move {
        let mut incoming = request.into_body();
        let mut count = 0;
        let mut client_trailers = None;
        while let Some(frame) = incoming.frame().await {
            match frame.unwrap().into_data() {
                Ok(data) => {
                    count += 1;
                    let reply = [b"re: ", data.as_ref()].concat();
                    send.send_data(Bytes::from(reply)).await.unwrap();
                }
                Err(other) => client_trailers = other.into_trailers().ok(),
            }
        }
        let mut trailers = client_trailers.unwrap_or_default();
        trailers.insert("grpc-status", HeaderValue::from(count));
        send.send_trailers(trailers).await.unwrap();
    });
    let mut response = Response::new(answer);
    response
        .headers_mut()
        .insert("content-type", HeaderValue::from_static("application/grpc"));
    response
}

#[tokio::test]
async fn a_stream_goes_both_ways_at_once() {
    let origin = Origin::builder().protocols(Protocols::Http2).start(chat);
    let front = Front::start(&config_with(&[&origin.url()], &h2c()));
    let mut client = front.http2().await;
    let (mut send, upload) = body::channel(1);
    let request = client
        .request("POST", "/chat")
        .header(TE, "trailers")
        .header("content-type", "application/grpc")
        .body(upload)
        .unwrap();
    let conversation = async {
        // The response begins before anything was sent.
        let response = client.send_streaming(request).await.unwrap();
        let mut replies = response.into_body();
        for i in 0..10 {
            send.send_data(format!("message {i}").into()).await.unwrap();
            let reply = replies.frame().await.unwrap().unwrap().into_data().unwrap();
            assert_eq!(reply, format!("re: message {i}"));
        }
        send.send_trailers(trailer("x-client", "done"))
            .await
            .unwrap();
        drop(send);
        let trailers = replies
            .frame()
            .await
            .unwrap()
            .unwrap()
            .into_trailers()
            .unwrap();
        assert_eq!(trailers["grpc-status"], "10");
        assert_eq!(trailers["x-client"], "done");
        assert!(replies.frame().await.is_none());
    };
    guarded("the conversation", conversation).await;
    front.settled().await;
}

/// A response with trailers only, as gRPC sends for an error.
#[tokio::test]
async fn trailers_without_a_body() {
    let origin = Origin::start(|_| async {
        let only = body::frames([Ok(Frame::trailers(trailer("grpc-status", "5")))]);
        Response::new(only)
    });
    let front = Front::start(&config_with(&[&origin.url()], &h2c()));
    let answer = front.http2().await.get("/").await.unwrap();
    assert_eq!(answer.body, "");
    assert_eq!(answer.trailers.unwrap()["grpc-status"], "5");
    front.settled().await;
}

#[tokio::test]
async fn trailers_cross_from_http1_to_http2() {
    let origin = faults::trailers(&[("x-sum", "42"), ("trailer", "x-sum")]);
    let front = Front::to(origin.url());
    let answer = front.http2().await.get("/").await.unwrap();
    assert_eq!(answer.text(), faults::PARTIAL);
    let trailers = answer.trailers.unwrap();
    assert_eq!(trailers["x-sum"], "42");
    assert!(
        !trailers.contains_key("trailer"),
        "not a matter of trailers"
    );
}

/// Framing fields are not allowed in trailers, and a recipient may drop them (RFC 9110 section 6.5.1).
#[tokio::test]
async fn a_length_in_the_trailers_is_not_passed_on() {
    let origin = faults::trailers(&[("x-sum", "42"), ("content-length", "5")]);
    let front = Front::to(origin.url());
    let answer = front.http2().await.get("/").await.unwrap();
    assert_eq!(answer.text(), faults::PARTIAL);
    let trailers = answer.trailers.unwrap();
    assert_eq!(trailers["x-sum"], "42");
    assert_eq!(trailers.len(), 1);
    front.settled().await;
}

#[tokio::test]
async fn announced_trailers_cross_in_http1() {
    let origin = faults::trailers(&[("x-sum", "42")]);
    let front = Front::to(origin.url());
    let request = "GET / HTTP/1.1\r\nHost: h\r\nTE: trailers\r\n\r\n";
    let response = RawClient::exchange(front.server.addr(), request)
        .await
        .unwrap();
    assert_eq!(response.text(), faults::PARTIAL);
    assert_eq!(response.trailers, [("x-sum".to_owned(), "42".to_owned())]);
}

#[tokio::test]
async fn request_trailers_reach_an_origin_of_http1() {
    let origin = Origin::builder().protocols(Protocols::Http1).start_echo();
    let front = Front::to(origin.url());
    let mut client = front.http2().await;
    let request = client
        .request("POST", "/")
        .body(body::with_trailers("content", trailer("x-sum", "7")))
        .unwrap();
    let echo: Echo = client.send(request).await.unwrap().json();
    assert_eq!(echo.body_text.as_deref(), Some("content"));
    assert_eq!(echo.trailers, [("x-sum".to_owned(), "7".to_owned())]);
}

#[tokio::test]
async fn a_route_can_add_and_filter_trailers() {
    let origin = Origin::start(|_| async {
        Response::new(body::with_trailers("content", trailer("x-secret", "1")))
    });
    let mut config = config_with_route(
        &[&origin.url()],
        &json!({ "Transforms": [
            { "ResponseTrailer": "x-added", "Set": "yes" },
            { "ResponseTrailersAllowed": "x-none" },
        ] }),
    );
    config["Clusters"]["c"]["HttpRequest"] = h2c()["HttpRequest"].clone();
    let front = Front::start(&config);
    let answer = front.http2().await.get("/").await.unwrap();
    let trailers = answer.trailers.unwrap();
    assert_eq!(trailers["x-added"], "yes");
    assert!(!trailers.contains_key("x-secret"));

    // A response without trailers gets some as well, though its length determined its end.
    let plain = Origin::start(|_| async { Response::new(body::full("content")) });
    config["Clusters"]["c"]["Destinations"]["d0"]["Address"] = plain.url().into();
    let front = Front::start(&config);
    let answer = front.http2().await.get("/").await.unwrap();
    assert_eq!(answer.text(), "content");
    assert_eq!(answer.trailers.unwrap()["x-added"], "yes");
    front.settled().await;
}

/// The body reports its size hint, so that servers can send it to clients.
#[tokio::test]
async fn size_hints_pass() {
    use tower_service::Service;
    let origin = Origin::start(|_| async { Response::new(body::full("12345")) });
    let front = Front::to(origin.url());
    let request = Request::get("/").body(body::empty()).unwrap();
    let response = front.proxy.service().call(request).await.unwrap();
    assert_eq!(response.body().size_hint().exact(), Some(5));
}
