//! Heads that arrive in pieces, and generated heads.

use proptest::prelude::*;

use super::*;

/// A comparable form of a head.
fn shape(bytes: &[u8], head: &RawRequest, table: &HeadTable) -> String {
    let fields: Vec<_> = table.fields().to_vec();
    format!(
        "{head:?} {fields:?} {}",
        bytes[..head.head_length()].escape_ascii()
    )
}

#[test]
fn a_head_is_the_same_however_it_comes() {
    let bytes = post(
        "Connection: X-Hop, close\r\nX-Hop: 1\r\nX_Y: 2\r\nTransfer-Encoding: chunked\r\nX-Long: aaaaaaaaaaaaaaaaaaaaaaaaaaa\tb\r\n\r\n",
    );
    let (head, table) = request(&bytes).unwrap();
    let expected = shape(&bytes, &head, &table);
    for piece in 1..bytes.len() {
        let mut table = HeadTable::new();
        let mut end = 0;
        let head = loop {
            end = (end + piece).min(bytes.len());
            match parse_request(&bytes[..end], &HeadLimits::default(), &mut table).unwrap() {
                Status::Complete(head) => break head,
                Status::Partial => assert!(end < bytes.len()),
            }
        };
        assert_eq!(end, bytes.len());
        assert_eq!(shape(&bytes, &head, &table), expected, "pieces of {piece}");
    }
}

#[test]
fn every_beginning_of_a_good_head_is_partial() {
    for bytes in [
        b"\r\nGET /a?b HTTP/1.1\r\nHost: t.example\r\nX_Y: a\tb \r\n\r\n".to_vec(),
        b"OPTIONS * HTTP/1.0\r\n\r\n".to_vec(),
        b"GET http://[::1]:80/ HTTP/1.1\r\nHost: t\r\n\r\n".to_vec(),
    ] {
        for end in 0..bytes.len() {
            let mut table = HeadTable::new();
            let read = parse_request(&bytes[..end], &HeadLimits::default(), &mut table);
            assert!(matches!(read, Ok(Status::Partial)), "{end}: {read:?}");
        }
    }
    let bytes = b"HTTP/1.1 200 OK\r\nX: a\r\n\r\n";
    for end in 0..bytes.len() {
        let mut table = HeadTable::new();
        let asked = RequestInfo::default();
        let read = parse_response(&bytes[..end], asked, &HeadLimits::default(), &mut table);
        assert!(matches!(read, Ok(Status::Partial)), "{end}: {read:?}");
    }
}

#[test]
fn a_table_serves_one_head_after_the_other() {
    let mut table = HeadTable::new();
    let limits = HeadLimits::default();
    let bytes = get("X: a\r\n\r\nrest of the connection");
    for _ in 0..3 {
        assert!(matches!(
            parse_request(&bytes, &limits, &mut table),
            Ok(Status::Complete(_))
        ));
        assert_eq!(table.fields().len(), 2);
        assert!(matches!(
            parse_request(&bytes[..40], &limits, &mut table),
            Ok(Status::Partial)
        ));
        table.clear();
        assert!(parse_request(b"GET / HTTP/1.1\r\nX\0", &limits, &mut table).is_err());
    }
}

#[test]
fn a_slow_head_is_rejected_at_its_limits() {
    for (start, rejection) in [
        ("GET /", Rejection::TargetTooLong),
        ("GET / HTTP/1.1\r\nX: ", Rejection::HeadTooLarge),
    ] {
        let bytes = start.to_owned() + &"a".repeat(40_000);
        let mut table = HeadTable::new();
        let mut rejected = None;
        for end in 1..bytes.len() {
            match parse_request(&bytes.as_bytes()[..end], &HeadLimits::default(), &mut table) {
                Ok(status) => assert!(matches!(status, Status::Partial)),
                Err(rejection) => {
                    rejected = Some(rejection);
                    break;
                }
            }
        }
        assert_eq!(rejected, Some(rejection), "{start}");
    }
}

/// Pieces with a meaning for a parser.
fn words() -> impl Strategy<Value = Vec<u8>> {
    let word = prop::sample::select(vec![
        &b"GET "[..],
        b"POST ",
        b"/",
        b"/a?b",
        b"*",
        b"http://h/",
        b" HTTP/1.1",
        b" HTTP/1.0",
        b"HTTP/1.1 200 OK",
        b"\r\n",
        b"\r",
        b"\n",
        b" ",
        b"\t",
        b":",
        b": ",
        b"Host",
        b"Host: h",
        b"Content-Length",
        b"5",
        b"Transfer-Encoding",
        b"chunked",
        b"Connection",
        b"close",
        b",",
        b"x_y",
        b"\0",
        b"\x7f",
        b"\xff",
        b"Expect: 100-continue",
        b"a",
        b"\r\n\r\n",
    ]);
    prop::collection::vec(word, 0..24).prop_map(|words| words.concat())
}

proptest! {
    #[test]
    fn whatever_comes_has_one_result(bytes in words(), cut in 0..200_usize) {
        let limits = HeadLimits::default();
        let mut whole = HeadTable::new();
        let expected = parse_request(&bytes, &limits, &mut whole);
        // An early error or result stays the same with more bytes.
        let mut table = HeadTable::new();
        let first = parse_request(&bytes[..cut.min(bytes.len())], &limits, &mut table);
        match first {
            Err(rejection) => prop_assert_eq!(expected.err(), Some(rejection)),
            Ok(Status::Partial) => {
                let again = parse_request(&bytes, &limits, &mut table);
                // An incomplete line is not parsed again, so its errors show later.
                if again.is_ok() && expected.is_err() {
                    prop_assert!(matches!(again, Ok(Status::Partial)));
                    let bytes = [&bytes[..], b"\n"].concat();
                    prop_assert!(parse_request(&bytes, &limits, &mut table).is_err());
                    return Ok(());
                }
                prop_assert_eq!(format!("{again:?}"), format!("{expected:?}"));
                prop_assert_eq!(table.fields(), whole.fields());
            }
            Ok(Status::Complete(head)) => {
                prop_assert_eq!(
                    format!("{:?}", Ok::<_, Rejection>(Status::Complete(head))),
                    format!("{expected:?}")
                );
            }
        }
    }

    #[test]
    fn what_is_accepted_follows_the_grammar(bytes in words()) {
        let mut table = HeadTable::new();
        let Ok(Status::Complete(head)) = parse_request(&bytes, &HeadLimits::default(), &mut table) else {
            return Ok(());
        };
        let text = &bytes[..head.head_length()];
        prop_assert!(text.ends_with(b"\r\n\r\n"));
        for pair in text.windows(2) {
            prop_assert_eq!(pair[1] == b'\n', pair[0] == b'\r', "bare");
        }
        for field in table.fields() {
            let name = field.name().get(&bytes);
            prop_assert!(http::HeaderName::from_bytes(name).is_ok());
            prop_assert!(http::HeaderValue::from_bytes(field.value().get(&bytes)).is_ok());
            let end = field.name().end() as usize;
            prop_assert_eq!(bytes[end], b':');
        }
    }
}
