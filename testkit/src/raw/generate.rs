//! Bytes that tests of limits send.

/// A head of exactly `length` bytes: `start` (complete lines, each with its CRLF), one long field `X-Long`, and the empty
/// line.
///
/// ```
/// let head = testkit::raw::head_of_bytes("GET / HTTP/1.1\r\nHost: a.example\r\n", 1_000_000);
/// assert_eq!(head.len(), 1_000_000);
/// assert!(head.ends_with(b"aaa\r\n\r\n"));
/// ```
///
/// # Panics
///
/// When `start` alone is longer.
pub fn head_of_bytes(start: &str, length: usize) -> Vec<u8> {
    const NAME: &str = "X-Long: ";
    const END: &str = "\r\n\r\n";
    let padding = length
        .checked_sub(start.len() + NAME.len() + END.len())
        .expect("a head is at least as long as its start");
    let mut head = Vec::with_capacity(length);
    head.extend(start.as_bytes());
    head.extend(NAME.as_bytes());
    head.resize(head.len() + padding, b'a');
    head.extend(END.as_bytes());
    head
}

/// A head with `fields` short fields after `start` (complete lines, each with its CRLF).
///
/// ```
/// let head = testkit::raw::head_with_fields("GET / HTTP/1.1\r\nHost: a.example\r\n", 2);
/// assert_eq!(head, b"GET / HTTP/1.1\r\nHost: a.example\r\nX-0: 0\r\nX-1: 1\r\n\r\n");
/// ```
pub fn head_with_fields(start: &str, fields: usize) -> Vec<u8> {
    let fields: String = (0..fields).map(|n| format!("X-{n}: {n}\r\n")).collect();
    format!("{start}{fields}\r\n").into_bytes()
}

/// One chunk of a chunked body; of no bytes, the last chunk without trailers.
///
/// ```
/// assert_eq!(testkit::raw::chunk("hello"), b"5\r\nhello\r\n");
/// assert_eq!(testkit::raw::chunk(""), b"0\r\n\r\n");
/// ```
pub fn chunk(content: impl AsRef<[u8]>) -> Vec<u8> {
    let content = content.as_ref();
    let mut chunk = format!("{:x}\r\n", content.len()).into_bytes();
    chunk.extend(content);
    chunk.extend(b"\r\n");
    chunk
}
