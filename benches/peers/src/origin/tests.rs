//! Tests of the origin over a socket.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use super::*;

const GUARD: Duration = Duration::from_secs(60);

/// Sends `bytes` and returns all that the origin answers until it closes.
fn ask(origin: &Origin, port: usize, bytes: &[u8]) -> String {
    let mut socket = TcpStream::connect(origin.addresses()[port]).unwrap();
    socket.set_read_timeout(Some(GUARD)).unwrap();
    socket.write_all(bytes).unwrap();
    let mut text = String::new();
    socket.read_to_string(&mut text).unwrap();
    text
}

#[test]
fn every_resource_is_served_on_every_port() {
    let origin = Origin::start(None).unwrap();
    for port in 0..PORTS {
        for resource in Resource::ALL {
            let request = format!(
                "GET /r1/{} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
                resource.segment()
            );
            let answer = ask(&origin, port, request.as_bytes());
            let (head, body) = answer.split_once("\r\n\r\n").unwrap();
            assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
            let payload = body.bytes().filter(|byte| *byte == b'x').count();
            assert_eq!(payload as u64, resource.len(), "{resource:?}");
        }
    }
}

#[test]
fn requests_are_answered_in_turn_however_they_are_cut() {
    let origin = Origin::start(None).unwrap();
    let requests = "POST /sink HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello\
                    POST /sink HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n\
                    GET /0 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
    for pieces in [1, 7, 50, requests.len()] {
        let mut socket = TcpStream::connect(origin.addresses()[0]).unwrap();
        socket.set_nodelay(true).unwrap();
        socket.set_read_timeout(Some(GUARD)).unwrap();
        for piece in requests.as_bytes().chunks(pieces) {
            socket.write_all(piece).unwrap();
        }
        let mut text = String::new();
        socket.read_to_string(&mut text).unwrap();
        assert_eq!(text.matches("HTTP/1.1 200 OK").count(), 3, "{text}");
        assert_eq!(
            text.matches("Content-Length: 2\r\n\r\nxx").count(),
            2,
            "{text}"
        );
    }
}

#[test]
fn an_echo_is_the_request_as_it_came() {
    let origin = Origin::start(None).unwrap();
    let request = "GET /r9/echo HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: 192.0.2.1\r\nConnection: close\r\n\r\n";
    let answer = ask(&origin, 3, request.as_bytes());
    assert!(answer.ends_with(request), "{answer}");
}

#[test]
fn what_is_not_there_and_what_is_no_request() {
    let origin = Origin::start(None).unwrap();
    let missing = ask(
        &origin,
        0,
        b"GET /none HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
    );
    assert!(missing.starts_with("HTTP/1.1 404 "), "{missing}");
    // Closed without an answer: the client is broken.
    assert_eq!(ask(&origin, 0, b"nonsense\r\n\r\n"), "");
}
