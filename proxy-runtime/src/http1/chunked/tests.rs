//! Tests of RFC 9112 section 7.1.

use proptest::prelude::*;

use super::*;
use crate::http1::{HeadLimits, HeadTable, Rejection};

/// The result of reading a body.
#[derive(Debug, PartialEq, Eq)]
struct Body {
    content: Vec<u8>,
    /// Number of bytes that were passed on unchanged.
    consumed: usize,
    /// The trailer fields.
    trailers: Vec<(Vec<u8>, Vec<u8>)>,
    /// Number of bytes in the trailer section.
    section: usize,
}

/// Reads `bytes` in pieces; `None` if the body does not end in them.
fn read(bytes: &[u8], piece: usize) -> Result<Option<Body>, Rejection> {
    let limits = HeadLimits::default();
    let mut table = HeadTable::new();
    let mut tracker = ChunkTracker::new();
    let mut body = Body {
        content: Vec::new(),
        consumed: 0,
        trailers: Vec::new(),
        section: 0,
    };
    let mut end = 0;
    while end < bytes.len() {
        end = (end + piece).min(bytes.len());
        let content = &mut body.content;
        let before = content.len();
        let progress =
            tracker.track_data(&bytes[body.consumed..end], &limits, &mut table, |data| {
                content.extend_from_slice(data);
            })?;
        assert_eq!(progress.payload, (content.len() - before) as u64);
        body.consumed += progress.consumed;
        assert_eq!(progress.ended, tracker.has_ended());
        if progress.ended {
            let section = &bytes[body.consumed..body.consumed + progress.trailers];
            body.section = section.len();
            if !section.is_empty() {
                for field in table.fields() {
                    let span = |span: crate::http1::Span| span.get(section).to_vec();
                    body.trailers
                        .push((span(field.name()), span(field.value())));
                }
            }
            return Ok(Some(body));
        }
    }
    Ok(None)
}

/// Reads whole and byte by byte, which must give the same result.
#[track_caller]
fn track(bytes: &[u8]) -> Result<Option<Body>, Rejection> {
    let whole = read(bytes, bytes.len().max(1));
    for piece in [1, 2, 3, 7] {
        assert_eq!(
            read(bytes, piece),
            whole,
            "pieces of {piece}: {}",
            bytes.escape_ascii()
        );
    }
    whole
}

#[test]
fn what_is_no_chunk_is_rejected() {
    use Rejection::{
        BareCarriageReturn, BareLineFeed, ChunkEnd, ChunkExtension, ChunkExtensionsTooLong,
        ChunkSize,
    };
    let digits = format!("{}5\r\nhello\r\n0\r\n\r\n", "0".repeat(30));
    let long = format!("5;{}\r\nhello\r\n0\r\n\r\n", "a".repeat(70_000));
    let many = format!("1;{}\r\nx\r\n", "a".repeat(48)).repeat(4000);
    for (id, bytes, rejection) in [
        ("ch-plus", "+5\r\nhello\r\n0\r\n\r\n", ChunkSize),
        ("ch-minus", "-5\r\nhello\r\n0\r\n\r\n", ChunkSize),
        ("ch-0x", "0x5\r\nhello\r\n0\r\n\r\n", ChunkSize),
        ("ch-lead-sp", " 5\r\nhello\r\n0\r\n\r\n", ChunkSize),
        ("ch-trail-sp", "5 \r\nhello\r\n0\r\n\r\n", ChunkSize),
        ("ch-trail-tab", "5\t\r\nhello\r\n0\r\n\r\n", ChunkSize),
        (
            "ch-wrap64",
            "10000000000000005\r\nhello\r\n0\r\n\r\n",
            ChunkSize,
        ),
        (
            "ch-max64",
            "FFFFFFFFFFFFFFFF\r\nhello\r\n0\r\n\r\n",
            ChunkSize,
        ),
        (
            "ch-neg63",
            "8000000000000005\r\nhello\r\n0\r\n\r\n",
            ChunkSize,
        ),
        ("ch-digits", &digits, ChunkSize),
        ("ch-empty", "\r\nhello\r\n0\r\n\r\n", ChunkSize),
        (
            "ch-under",
            "1_0\r\nhellohellohello!\r\n0\r\n\r\n",
            ChunkSize,
        ),
        ("ch-text", "zz\r\nhello\r\n0\r\n\r\n", ChunkSize),
        ("ch-size-lf", "5\nhello\r\n0\r\n\r\n", BareLineFeed),
        ("ch-size-cr", "5\rhello\r\n0\r\n\r\n", BareCarriageReturn),
        ("ch-end-cr", "5\r\nhello\rX0\r\n\r\n", ChunkEnd),
        ("ch-end-lf", "5\r\nhello\n0\r\n\r\n", ChunkEnd),
        ("ch-end-none", "5\r\nhello0\r\n\r\n", ChunkEnd),
        ("ch-extra", "5\r\nhelloXX\r\n0\r\n\r\n", ChunkEnd),
        ("ch-ext-lf", "5;a\nhello\r\n0\r\n\r\n", ChunkExtension),
        (
            "ch-ext-cr",
            "5;a\rb\r\nhello\r\n0\r\n\r\n",
            BareCarriageReturn,
        ),
        ("ch-ext-nul", "5;a\0b\r\nhello\r\n0\r\n\r\n", ChunkExtension),
        ("ch-ext-sp", "5; a\r\nhello\r\n0\r\n\r\n", ChunkExtension),
        (
            "ch-ext-sp-eq",
            "5;a =b\r\nhello\r\n0\r\n\r\n",
            ChunkExtension,
        ),
        ("ch-ext-empty", "5;a=\r\nhello\r\n0\r\n\r\n", ChunkExtension),
        (
            "ch-ext-open",
            "5;a=\"b\r\nhello\r\n0\r\n\r\n",
            ChunkExtension,
        ),
        (
            "ch-quoted-crlf",
            "5;a=\"\r\nhello\r\n0\r\n\r\n",
            ChunkExtension,
        ),
        (
            "ch-quoted-esc",
            "5;a=\"\\\r\n\"\r\nhello\r\n0\r\n\r\n",
            ChunkExtension,
        ),
        (
            "ch-quoted-more",
            "5;a=\"b\"c\r\nhello\r\n0\r\n\r\n",
            ChunkExtension,
        ),
        ("ch-semi-only", "5;\r\nhello\r\n0\r\n\r\n", ChunkExtension),
        ("ch-semi-two", "5;;a\r\nhello\r\n0\r\n\r\n", ChunkExtension),
        ("ch-ext-big", &long, ChunkExtensionsTooLong),
        ("ch-ext-many", &many, ChunkExtensionsTooLong),
        ("ch-fin-lf", "5\r\nhello\r\n0\n\r\n", BareLineFeed),
        ("ch-fin-lf2", "5\r\nhello\r\n0\r\n\n", BareLineFeed),
        ("ch-fin-cr", "5\r\nhello\r\n0\r\n\rX\n", BareCarriageReturn),
    ] {
        assert_eq!(track(bytes.as_bytes()), Err(rejection), "{id}");
    }
}

#[test]
fn trailers_are_as_strict_as_heads() {
    use Rejection::{
        BareLineFeed, FieldName, FieldValue, Folded, HeadTooLarge, TooManyFields, Trailer,
    };
    let big = format!("X: {}\r\n", "a".repeat(40_000));
    for (id, section, rejection) in [
        ("tr-nocolon", "garbage\r\n", FieldName),
        ("tr-sp-colon", "X : a\r\n", FieldName),
        ("tr-lf", "X-T: a\n", BareLineFeed),
        ("tr-nul", "X-T: a\0b\r\n", FieldValue),
        ("tr-fold", "X-T: a\r\n b\r\n", Folded),
        (
            "tr-transfer-encoding",
            "Transfer-Encoding: identity\r\n",
            Trailer,
        ),
        ("tr-length", "Content-Length: 5\r\n", Trailer),
        ("tr-host", "X: y\r\nHost: evil.example\r\n", Trailer),
        ("tr-many", &"X: a\r\n".repeat(101), TooManyFields),
        ("tr-big", &big, HeadTooLarge),
    ] {
        let bytes = format!("5\r\nhello\r\n0\r\n{section}\r\n");
        assert_eq!(track(bytes.as_bytes()), Err(rejection), "{id}");
    }
}

#[test]
fn what_is_chunked_is_followed() {
    for (id, bytes, content, section) in [
        ("ch-ok", "5\r\nhello\r\n0\r\n\r\n", "hello", 0),
        ("ch-ok-empty", "0\r\n\r\n", "", 0),
        (
            "ch-ok-hex",
            "A\r\nhellohello\r\na\r\nhellohello\r\n0\r\n\r\n",
            "hellohellohellohello",
            0,
        ),
        (
            "ch-ok-two",
            "1a\r\nabcdefghijklmnopqrstuvwxyz\r\n0\r\n\r\n",
            "abcdefghijklmnopqrstuvwxyz",
            0,
        ),
        ("ch-ok-zeros", "005\r\nhello\r\n000\r\n\r\n", "hello", 0),
        (
            "ch-ok-16",
            "0000000000000005\r\nhello\r\n0\r\n\r\n",
            "hello",
            0,
        ),
        (
            "ch-ok-ext",
            "5;a=b;c=\"d\"\r\nhello\r\n0;e\r\n\r\n",
            "hello",
            0,
        ),
        (
            "ch-ok-quoted",
            "5;a=\"; \\\" \t\"\r\nhello\r\n0\r\n\r\n",
            "hello",
            0,
        ),
        ("ch-ok-crlf", "4\r\n\r\n\r\n\r\n0\r\n\r\n", "\r\n\r\n", 0),
        (
            "ch-ok-trailer",
            "5\r\nhello\r\n0\r\nX-T: 1\r\n\r\n",
            "hello",
            10,
        ),
        ("ch-ok-trailers", "0\r\nX-T: 1\r\ny:\r\n\r\n", "", 14),
    ] {
        let next = "GET / HTTP/1.1\r\n";
        let body = track(format!("{bytes}{next}").as_bytes()).unwrap();
        let body = body.unwrap_or_else(|| panic!("{id} does not end"));
        assert_eq!(body.content, content.as_bytes(), "{id}");
        assert_eq!(
            (body.consumed + body.section, body.section),
            (bytes.len(), section),
            "{id}"
        );
    }
    let body = track(b"0\r\nX-T: 1\r\ny: \r\n\r\n").unwrap().unwrap();
    let owned = |name: &str, value: &str| (name.as_bytes().to_vec(), value.as_bytes().to_vec());
    assert_eq!(body.trailers, [owned("X-T", "1"), owned("y", "")]);
}

#[test]
fn a_body_that_is_cut_does_not_end() {
    let bytes = b"5;a=\"b\"\r\nhello\r\n0\r\nX-T: 1\r\n\r\n";
    for end in 0..bytes.len() {
        assert_eq!(track(&bytes[..end]), Ok(None), "{end}");
    }
    // Sizes larger than any body leave the tracker waiting.
    assert_eq!(
        track(b"100000005\r\nhello\r\n0\r\n\r\n"),
        Ok(None),
        "ch-wrap32"
    );
}

#[test]
fn what_was_rejected_stays_rejected() {
    let limits = HeadLimits::default();
    let mut table = HeadTable::new();
    let mut tracker = ChunkTracker::new();
    assert!(tracker.track(b"5\r\nhelloX", &limits, &mut table).is_err());
    let again = tracker.track(b"\r\n0\r\n\r\n", &limits, &mut table);
    assert_eq!(again, Err(Rejection::ChunkEnd));
}

#[test]
fn data_can_be_moved_unseen() {
    let limits = HeadLimits::default();
    let mut table = HeadTable::new();
    let mut tracker = ChunkTracker::new();
    assert_eq!(tracker.remaining_data(), 0);
    tracker.track(b"a\r\n12", &limits, &mut table).unwrap();
    assert_eq!(tracker.remaining_data(), 8);
    tracker.skip_data(5);
    assert_eq!(tracker.remaining_data(), 3);
    tracker.skip_data(3);
    assert_eq!(tracker.remaining_data(), 0);
    let progress = tracker
        .track(b"\r\n0\r\n\r\n", &limits, &mut table)
        .unwrap();
    assert!(progress.ended);
    assert_eq!(progress.payload, 0);
}

#[test]
fn sizes_are_written_in_hexadecimal() {
    for (size, line) in [
        (1, "1\r\n"),
        (15, "f\r\n"),
        (16, "10\r\n"),
        (65_536, "10000\r\n"),
        (u64::MAX, "ffffffffffffffff\r\n"),
    ] {
        let head = ChunkHead::new(size.try_into().unwrap());
        assert_eq!(head.as_bytes(), line.as_bytes());
    }
}

fn chunks() -> impl Strategy<Value = Vec<Vec<u8>>> {
    let chunk = prop::collection::vec(prop::sample::select(b"\r\n0;a5".to_vec()), 1..20);
    prop::collection::vec(chunk, 0..6)
}

proptest! {
    #[test]
    fn what_is_written_is_read(chunks in chunks(), extension in "(;[a-z]{1,3}(=\"[a-z;]{0,3}\")?)?", piece in 1..40_usize) {
        let mut bytes = Vec::new();
        for chunk in &chunks {
            let head = ChunkHead::new((chunk.len() as u64).try_into().unwrap());
            let line = head.as_bytes();
            bytes.extend_from_slice(&line[..line.len() - 2]);
            bytes.extend_from_slice(extension.as_bytes());
            bytes.extend_from_slice(b"\r\n");
            bytes.extend_from_slice(chunk);
            bytes.extend_from_slice(CHUNK_END);
        }
        bytes.extend_from_slice(LAST_CHUNK);
        let length = bytes.len();
        bytes.extend_from_slice(b"0\r\n");
        let body = read(&bytes, piece).unwrap().unwrap();
        prop_assert_eq!(body.content, chunks.concat());
        prop_assert_eq!(body.consumed, length);
    }

    #[test]
    fn cuts_make_no_difference(words in prop::collection::vec(prop::sample::select(vec![
        &b"5"[..], b"\r\n", b"\r", b"\n", b"hello", b"0", b";", b"a", b"=", b"\"", b"\\", b"X: y", b":", b" ", b"A", b"\0",
    ]), 0..24)) {
        // With a line end, since some errors of a trailer line show only then.
        let bytes = [&words.concat()[..], b"\n"].concat();
        let whole = read(&bytes, bytes.len());
        for piece in [1, 2, 5] {
            let cut = read(&bytes, piece);
            prop_assert_eq!(&cut, &whole);
        }
    }
}
