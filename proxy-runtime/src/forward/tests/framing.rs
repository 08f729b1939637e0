//! Lengths of bodies, as heads tell them.

use http::header::{CONTENT_LENGTH, TRANSFER_ENCODING};
use http::{HeaderMap, HeaderValue};

use crate::forward::body_kind::{BodyKind, body_kind};

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
