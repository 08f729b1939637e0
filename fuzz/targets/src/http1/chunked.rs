//! Chunked bodies.

use proxy_runtime::http1::{HeadTable, write_trailers};

use super::ours::chunks;
use super::theirs;
use crate::input::MAX_BYTES;

const HEAD: &[u8] = b"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n";
const CANARY: &[u8] = b"GET /canary HTTP/1.1\r\nHost: canary\r\n\r\n";

/// Fuzzes a chunked body, possibly with bytes behind it.
///
/// * The position of cuts makes no difference. The content is no longer than the input.
/// * Every accepted body is accepted by hyper with the same content. A canary behind it is a
///   separate request.
/// * The forwarded body, with the permitted trailers, has the same content for both.
pub fn http1_chunked(data: &[u8]) {
    let bytes = &data[..data.len().min(MAX_BYTES)];
    let mut table = HeadTable::new();
    let mut content = Vec::new();
    let whole = chunks(bytes, bytes.len(), &mut table, &mut content);
    for piece in [1, 2, 3, 17] {
        let mut cut = Vec::new();
        let mut table = HeadTable::new();
        let progress = chunks(bytes, piece, &mut table, &mut cut);
        match (&progress, &whole) {
            // An incomplete trailer line is not read again.
            (Ok(progress), Err(_)) => assert!(!progress.ended),
            _ => assert_eq!(progress, whole, "pieces of {piece}"),
        }
        if whole.is_ok() {
            assert_eq!(cut, content);
        }
    }
    let Ok(progress) = whole else {
        return;
    };
    if !progress.ended {
        return;
    }
    assert!(content.len() <= progress.consumed);
    let section = &bytes[progress.consumed..progress.consumed + progress.trailers];
    check(&content, &bytes[..progress.consumed + progress.trailers]);
    let mut sent = bytes[..progress.consumed].to_vec();
    if !section.is_empty() {
        write_trailers(section, &table, &mut sent);
    }
    check(&content, &sent);
}

/// Asserts that hyper reads a body with this content, followed by the canary.
fn check(content: &[u8], body: &[u8]) {
    let messages = theirs::requests([HEAD, body, CANARY].concat());
    assert_eq!(messages.len(), 2, "{}", body.escape_ascii());
    assert_eq!(messages[0].body, content);
    assert!(messages[1].start.contains("/canary"));
    let mut again = Vec::new();
    let progress = chunks(body, body.len(), &mut HeadTable::new(), &mut again);
    let progress = progress.expect("it was accepted");
    assert!(progress.ended);
    assert_eq!(progress.consumed + progress.trailers, body.len());
    assert_eq!(again, content);
}
