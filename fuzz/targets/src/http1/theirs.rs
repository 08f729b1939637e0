//! Streams as hyper reads them.

use std::cell::RefCell;
use std::convert::Infallible;
use std::rc::Rc;

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode, Version};
use http_body_util::{BodyExt, Empty};
use hyper::body::Incoming;
use hyper::service::service_fn;

use super::memory::Memory;
use super::{Fields, Message, of_map};
use crate::input::paused;

fn version(version: Version) -> &'static str {
    match version {
        Version::HTTP_10 => "Http10",
        _ => "Http11",
    }
}

/// Returns the complete requests that hyper gives to a service for a connection with these bytes.
pub(super) fn requests(bytes: Vec<u8>) -> Vec<Message> {
    let messages = Rc::new(RefCell::new(Vec::new()));
    let service = service_fn(|request: Request<Incoming>| {
        let messages = Rc::clone(&messages);
        async move {
            let (head, body) = request.into_parts();
            let uri = &head.uri;
            let start = format!(
                "{} {:?} {} {:?} {}",
                head.method,
                uri.authority().map(ToString::to_string),
                if head.method == Method::CONNECT {
                    ""
                } else {
                    uri.path()
                },
                uri.query().map(ToOwned::to_owned),
                version(head.version),
            );
            if let Ok(body) = body.collect().await {
                let trailers = body.trailers().map(of_map).unwrap_or_default();
                messages.borrow_mut().push(Message {
                    start,
                    fields: of_map(&head.headers),
                    body: body.to_bytes().to_vec(),
                    trailers,
                });
            }
            Ok::<_, Infallible>(Response::new(Empty::<Bytes>::new()))
        }
    });
    paused().block_on(async {
        // How it handles invalid bytes does not matter here.
        let _ = hyper::server::conn::http1::Builder::new()
            .half_close(true)
            .header_read_timeout(None)
            .serve_connection(Memory::of_client(bytes), service)
            .await;
    });
    messages.take()
}

/// Returns the final response that hyper's client reads from these bytes, without the body of a
/// tunnel.
pub(super) fn response(bytes: Vec<u8>, method: &Method, is_upgrade: bool) -> Option<Message> {
    let mut request = Request::builder().method(method).uri("/");
    if *method == Method::CONNECT {
        request = Request::connect("h:80");
    }
    if is_upgrade {
        request = request
            .header("connection", "upgrade")
            .header("upgrade", "x");
    }
    let request = request.body(Empty::<Bytes>::new()).expect("it is valid");
    paused().block_on(async {
        let memory = Memory::of_server(bytes);
        let (mut sender, connection) = hyper::client::conn::http1::handshake(memory).await.ok()?;
        let answer = async {
            let response = sender.send_request(request).await.ok()?;
            let (head, body) = response.into_parts();
            let is_tunnel = head.status == StatusCode::SWITCHING_PROTOCOLS
                || (*method == Method::CONNECT && head.status.is_success());
            let mut message = Message {
                start: format!("{} {}", head.status.as_u16(), version(head.version)),
                fields: of_map(&head.headers),
                body: Vec::new(),
                trailers: Fields::new(),
            };
            if !is_tunnel {
                let body = body.collect().await.ok()?;
                message.trailers = body.trailers().map(of_map).unwrap_or_default();
                message.body = body.to_bytes().to_vec();
            }
            Some(message)
        };
        let connection = async {
            let _ = connection.with_upgrades().await;
            std::future::pending::<()>().await;
        };
        tokio::select! {
            answer = answer => answer,
            () = connection => unreachable!("it pends"),
        }
    })
}
