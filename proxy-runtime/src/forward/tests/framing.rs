//! Lengths of bodies, as heads tell them.

use http::header::{CONTENT_LENGTH, TRANSFER_ENCODING};
use http::{HeaderMap, HeaderValue, Method, Response, StatusCode, response};

use crate::forward::request::{BodyKind, body_kind};
use crate::forward::response::promised_length;

fn headers(lines: &[(http::HeaderName, &'static str)]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in lines {
        headers.append(name, HeaderValue::from_static(value));
    }
    headers
}

#[test]
fn l24_to_l30_what_a_request_says_of_its_body() {
    let length = |value| (CONTENT_LENGTH, value);
    let chunked = (TRANSFER_ENCODING, "chunked");
    for (lines, is_empty, expected) in [
        (vec![], true, Some(BodyKind::Empty)),
        (vec![], false, Some(BodyKind::Stream)),
        (vec![length("0")], true, Some(BodyKind::Empty)),
        (vec![length("5")], false, Some(BodyKind::Length(5))),
        (
            vec![length("5"), length("5")],
            false,
            Some(BodyKind::Length(5)),
        ),
        (
            vec![length("5"), chunked.clone()],
            false,
            Some(BodyKind::Stream),
        ),
        (vec![chunked.clone()], false, Some(BodyKind::Stream)),
        (vec![chunked], true, Some(BodyKind::Empty)),
        (vec![length("5"), length("6")], false, None),
        (vec![length("5, 5")], false, None),
        (vec![length("+5")], false, None),
        (vec![length("")], false, None),
        (vec![length("99999999999999999999")], false, None),
    ] {
        assert_eq!(
            body_kind(&headers(&lines), is_empty).ok(),
            expected,
            "{lines:?}"
        );
    }
}

fn head(status: u16, lines: &[(http::HeaderName, &'static str)]) -> response::Parts {
    let mut response = Response::new(());
    *response.status_mut() = StatusCode::from_u16(status).unwrap();
    *response.headers_mut() = headers(lines);
    response.into_parts().0
}

#[test]
fn a_response_promises_a_length_only_if_it_has_a_body() {
    let five = [(CONTENT_LENGTH, "5")];
    let both = [(CONTENT_LENGTH, "5"), (TRANSFER_ENCODING, "chunked")];
    for (method, head, expected) in [
        (Method::GET, head(200, &five), Some(5)),
        (Method::GET, head(404, &five), Some(5)),
        (Method::HEAD, head(200, &five), None),
        (Method::GET, head(304, &five), None),
        (Method::GET, head(204, &five), None),
        (Method::GET, head(200, &both), None),
        (Method::GET, head(200, &[]), None),
    ] {
        assert_eq!(
            promised_length(&method, &head),
            expected,
            "{method} {head:?}"
        );
    }
}
