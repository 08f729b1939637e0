mod lines;
mod pieces;
mod requests;
mod responses;
mod syntax;
mod view;

use super::*;
use crate::http1::{Framing, HeadLimits, Rejection};

/// Parses a head. Returns it with the table of its fields.
fn request(bytes: &[u8]) -> Result<(RawRequest, HeadTable), Rejection> {
    request_within(bytes, &HeadLimits::default())
}

#[track_caller]
fn request_within(bytes: &[u8], limits: &HeadLimits) -> Result<(RawRequest, HeadTable), Rejection> {
    let mut table = HeadTable::new();
    match parse_request(bytes, limits, &mut table)? {
        Status::Complete(request) => Ok((request, table)),
        Status::Partial => panic!("partial: {}", bytes.escape_ascii()),
    }
}

#[track_caller]
fn response_to(asked: RequestInfo, bytes: &[u8]) -> Result<(RawResponse, HeadTable), Rejection> {
    let mut table = HeadTable::new();
    match parse_response(bytes, asked, &HeadLimits::default(), &mut table)? {
        Status::Complete(response) => Ok((response, table)),
        Status::Partial => panic!("partial: {}", bytes.escape_ascii()),
    }
}

#[track_caller]
fn response(bytes: &[u8]) -> Result<(RawResponse, HeadTable), Rejection> {
    response_to(RequestInfo::default(), bytes)
}

/// A request line and `Host`, followed by `rest`.
fn get(rest: impl AsRef<[u8]>) -> Vec<u8> {
    [b"GET /p HTTP/1.1\r\nHost: t.example\r\n", rest.as_ref()].concat()
}

fn post(rest: impl AsRef<[u8]>) -> Vec<u8> {
    [b"POST /p HTTP/1.1\r\nHost: t.example\r\n", rest.as_ref()].concat()
}

/// A complete head with this request line.
fn line(line: impl AsRef<[u8]>) -> Vec<u8> {
    [line.as_ref(), b"\r\nHost: t.example\r\n\r\n"].concat()
}

/// A complete head with this line in place of `Host`.
fn host(field: &str) -> Vec<u8> {
    format!("GET /p HTTP/1.1\r\n{field}\r\n\r\n").into_bytes()
}

#[track_caller]
fn assert_rejected(id: &str, bytes: &[u8], expected: Rejection) {
    match request(bytes) {
        Err(rejection) => assert_eq!(rejection, expected, "{id}"),
        Ok(_) => panic!("{id} is accepted: {}", bytes.escape_ascii()),
    }
}
