//! Ambiguous raw HTTP/1.1 requests, and the requests that a destination gets from them.

use std::net::SocketAddr;

use serde_json::json;
use testkit::raw::{RawClient, RawOrigin, Recording};
use testkit::time::guarded;

use crate::server::malformed::{self, Expect};
use crate::server::ways::{OK, as_bytes, origin, over_types, proxy};

/// The expected result of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    /// A status of at least 400, the end of the connection, and nothing for the destination.
    Rejected,
    /// One unambiguous request for the destination.
    Forwarded,
}

use Fate::{Forwarded, Rejected};

const SMUGGLED: &str = "GET /smuggled HTTP/1.1\r\nHost: t.example\r\n\r\n";

/// Lines that declare the length of a body, or fail to; a chunked body and a request follow.
const LENGTHS: [(&str, &str); 19] = [
    ("cl-tab", "Content-Length: 5\t6"),
    ("cl-comma", "Content-Length: ,"),
    ("cl-fraction", "Content-Length: 5.0"),
    ("cl-quoted", "Content-Length: \"5\""),
    ("cl-exponent", "Content-Length: 1e1"),
    ("cl-nul", "Content-Length: 5\0"),
    ("cl-space-colon", "Content-Length : 5"),
    ("cl-folded", "Content-Length:\r\n 5"),
    ("cl-wide-digit", "Content-Length: \u{ff15}"),
    ("te-folded", "Transfer-Encoding:\r\n chunked"),
    ("te-empty", "Transfer-Encoding:"),
    ("te-identity", "Transfer-Encoding: identity"),
    ("te-quoted", "Transfer-Encoding: \"chunked\""),
    ("te-tabs", "Transfer-Encoding:\tchunked\t"),
    ("te-space-colon", "Transfer-Encoding : chunked"),
    ("te-tab-colon", "Transfer-Encoding\t: chunked"),
    ("te-nul-name", "Transfer-Encoding\0: chunked"),
    (
        "te-two",
        "Transfer-Encoding: identity\r\nTransfer-Encoding: chunked",
    ),
    ("te-form-feed", "Transfer-Encoding: chunked\x0c"),
];

/// Invalid lines of a head.
const LINES: [(&str, &str); 14] = [
    ("no-colon", "X-A"),
    ("name-latin", "X\u{e9}: b"),
    ("name-nul", "X\0A: b"),
    ("name-slash", "X/A: b"),
    ("name-tab", "X\tA: b"),
    ("name-quoted", "\"X\": b"),
    ("value-nul", "X-A: a\0b"),
    ("value-backspace", "X-A: a\x08b"),
    ("value-escape", "X-A: a\x1b[2J"),
    ("value-cr-cr", "X-A: y\r"),
    ("folded-space", "X-A: a\r\n b"),
    ("folded-empty", "X-A: a\r\n "),
    ("second-host-list", "Host: t.example, t.example"),
    ("second-host-folded", "Host:\r\n t.example"),
];

/// Request lines that are invalid, or ask for unsupported functions.
const STARTS: [(&str, &str); 18] = [
    ("version-space", "GET /p HTTP/1.1 "),
    ("version-small", "GET /p http/1.1"),
    ("version-short", "GET /p HTTP/1."),
    ("version-zero", "GET /p HTTP/01.1"),
    ("version-comma", "GET /p HTTP/1,1"),
    ("version-apart", "GET /p HTTP /1.1"),
    ("version-3", "GET /p HTTP/3.0"),
    ("method-control", "G\x01T /p HTTP/1.1"),
    ("method-paren", "G(T /p HTTP/1.1"),
    ("method-colon", "GET: /p HTTP/1.1"),
    ("method-latin", "G\u{e9}T /p HTTP/1.1"),
    ("target-del", "GET /p\x7f HTTP/1.1"),
    ("target-query-space", "GET /p?a b HTTP/1.1"),
    ("target-query-control", "GET /p?\x01 HTTP/1.1"),
    ("target-backslash", "GET \\p HTTP/1.1"),
    ("target-user", "GET http://u@t.example/p HTTP/1.1"),
    ("target-scheme", "GET ftp://t.example/p HTTP/1.1"),
    ("target-no-host", "GET http:///p HTTP/1.1"),
];

/// Unusual but unambiguous requests.
const UNUSUAL: [(&str, &str); 11] = [
    (
        "te-capitals",
        "POST /p HTTP/1.1\r\nHost: t.example\r\nTransfer-Encoding: CHUNKED\r\n\r\n1\r\na\r\n0\r\n\r\n",
    ),
    (
        "cl-zeros",
        "POST /p HTTP/1.1\r\nHost: t.example\r\nContent-Length: 0000000001\r\n\r\na",
    ),
    (
        "target-whole",
        "GET http://t.example/p HTTP/1.1\r\nHost: t.example\r\n\r\n",
    ),
    (
        "target-whole-other",
        "GET http://other.example/p HTTP/1.1\r\nHost: t.example\r\n\r\n",
    ),
    (
        "connection-names",
        "GET /p HTTP/1.1\r\nHost: t.example\r\nConnection: X-Hidden\r\nX-Hidden: hidden\r\n\r\n",
    ),
    (
        "connection-host",
        "GET /p HTTP/1.1\r\nHost: t.example\r\nConnection: Host\r\n\r\n",
    ),
    (
        "keep-alive",
        "GET /p HTTP/1.1\r\nHost: t.example\r\nKeep-Alive: hidden\r\nProxy-Connection: hidden\r\n\r\n",
    ),
    (
        "chunk-extension",
        "POST /p HTTP/1.1\r\nHost: t.example\r\nTransfer-Encoding: chunked\r\n\r\n1;a=b\r\na\r\n0\r\n\r\n",
    ),
    ("slashes", "GET /a//b HTTP/1.1\r\nHost: t.example\r\n\r\n"),
    (
        "query",
        "GET /p?a=%zz&b[]=;// HTTP/1.1\r\nHost: t.example\r\n\r\n",
    ),
    (
        "latin-value",
        "GET /p HTTP/1.1\r\nHost: t.example\r\nX-A: \u{e9}\r\n\r\n",
    ),
];

/// Characters stand for bytes.
fn bytes(text: &str) -> Vec<u8> {
    let byte = |c: char| u8::try_from(u32::from(c)).ok();
    match text.chars().map(byte).collect() {
        Some(bytes) => bytes,
        None => text.as_bytes().to_vec(),
    }
}

fn cases() -> Vec<(&'static str, Vec<u8>, Fate)> {
    let known = malformed::length_cases().into_iter();
    let known = known.chain(malformed::head_cases());
    let known = known.map(|(name, request, expect)| match expect {
        Expect::Rejected(_) => (name, request, Rejected),
        Expect::Served => (name, request, Forwarded),
    });
    let lengths = LENGTHS.map(|(name, line)| {
        let head = format!("POST /p HTTP/1.1\r\nHost: t.example\r\n{line}\r\n\r\n");
        (name, bytes(&format!("{head}0\r\n\r\n{SMUGGLED}")), Rejected)
    });
    let lines = LINES.map(|(name, line)| {
        let head = format!("GET /p HTTP/1.1\r\nHost: t.example\r\n{line}\r\n\r\n{SMUGGLED}");
        (name, bytes(&head), Rejected)
    });
    let starts = STARTS.map(|(name, start)| {
        let head = format!("{start}\r\nHost: t.example\r\n\r\n{SMUGGLED}");
        (name, bytes(&head), Rejected)
    });
    let unusual = UNUSUAL.map(|(name, request)| (name, bytes(request), Forwarded));
    let made = lengths.into_iter().chain(lines).chain(starts);
    known.chain(made).chain(unusual).collect()
}

/// All that the destination has read so far.
fn came(origin: &RawOrigin) -> String {
    let mut texts: Vec<_> = origin.recordings().iter().map(Recording::text).collect();
    texts.sort();
    texts.concat()
}

/// Requests before another one on its connection, in the same write.
struct Before {
    bytes: &'static str,
    /// The length of what the destination gets of it.
    sent: usize,
}

impl Before {
    /// Plays it alone.
    async fn new(bytes: &'static str, address: SocketAddr, origin: &RawOrigin) -> Self {
        let before = came(origin).len();
        if !bytes.is_empty() {
            let response = RawClient::exchange(address, bytes).await.unwrap();
            assert_eq!(response.status(), 200);
        }
        let sent = came(origin).len() - before;
        Self { bytes, sent }
    }
}

/// Returns a description of an unexpected result.
async fn play(
    address: SocketAddr,
    origin: &RawOrigin,
    first: &Before,
    (request, fate): (&[u8], Fate),
) -> Result<(), String> {
    let before = came(origin).len();
    let mut client = RawClient::connect(address).await.unwrap();
    let all = [first.bytes.as_bytes(), request].concat();
    client.write_all(all).await.unwrap();
    if !first.bytes.is_empty() {
        let response = client.read_response().await;
        let response = response.map_err(|error| format!("the first one: {error}"))?;
        if response.status() != 200 {
            return Err(format!("{} for the first one", response.status()));
        }
    }
    let response = client
        .read_response()
        .await
        .map_err(|error| error.to_string())?;
    let status = response.status();
    let all = came(origin);
    let more = all.len() - before - first.sent;
    match fate {
        Rejected => {
            client.assert_closed().await;
            match (status, more) {
                (400.., 0) => Ok(()),
                _ => Err(format!("{status}, and the destination got {more} bytes")),
            }
        }
        Forwarded if status == 200 => Ok(()),
        Forwarded => Err(format!("{status}, though it has one meaning")),
    }
}

/// Fails if a request that a destination got is ambiguous.
fn check(request: &str) -> Result<(), String> {
    let (head, _) = request.split_once("\r\n\r\n").ok_or("it has no end")?;
    let mut lines = head.split("\r\n");
    let start = lines.next().unwrap_or_default();
    if start.split(' ').count() != 3 || !start.ends_with(" HTTP/1.1") {
        return Err(format!("its first line is {start:?}"));
    }
    let fields: Vec<_> = lines
        .map(|line| line.split_once(": ").unwrap_or((line, "\n")))
        .collect();
    let count = |name: &str| {
        let named = fields
            .iter()
            .filter(|(known, _)| known.eq_ignore_ascii_case(name));
        named.count()
    };
    let has_control = |text: &str| text.contains(|c: char| c.is_ascii_control() && c != '\t');
    let is_bad = |(name, value): &&(&str, &str)| {
        name.contains([' ', '\t', ':', '"', '\\']) || has_control(name) || has_control(value)
    };
    if let Some(bad) = fields.iter().find(is_bad) {
        return Err(format!("it has the field {bad:?}"));
    }
    let lengths = count("content-length") + count("transfer-encoding");
    if count("host") != 1 || lengths > 1 {
        return Err(format!(
            "it has {} hosts and {lengths} lengths",
            count("host")
        ));
    }
    match request.contains("hidden") {
        true => Err("it has what was for the proxy alone".to_owned()),
        false => Ok(()),
    }
}

/// Alone on a connection.
const ALONE: &[&str] = &[""];

/// Requests that are right, the second one with a body.
const BEHIND: &[&str] = &[
    "GET /first HTTP/1.1\r\nHost: t.example\r\n\r\n",
    "POST /first HTTP/1.1\r\nHost: t.example\r\nContent-Length: 5\r\n\r\nabc\r\n",
];

#[tokio::test]
async fn destinations_see_one_reading_or_nothing() {
    destinations_see_one_reading(ALONE, "what destinations see of raw requests").await;
}

/// Valid requests before a hostile one change nothing, although they share reads and connections with it.
#[tokio::test]
async fn destinations_see_one_reading_or_nothing_behind_other_requests() {
    destinations_see_one_reading(BEHIND, "the same behind other requests").await;
}

/// The number of cases is what SECURITY.md says, over both lanes.
async fn destinations_see_one_reading(behind: &'static [&'static str], name: &str) {
    let cases = cases();
    let documented = concat!(env!("CARGO_MANIFEST_DIR"), "/../SECURITY.md");
    let documented = std::fs::read_to_string(documented).unwrap();
    let row = format!("| HTTP/1.1, {name} | {} |", cases.len() * behind.len());
    assert!(
        documented.contains(&row),
        "SECURITY.md does not have {row:?}"
    );
    let mut wrong = Vec::new();
    for serve in [as_bytes, over_types] {
        let origin = origin(OK);
        let proxy = proxy(&origin, &json!({}), "");
        let server = serve(&proxy);
        let address = server.local_addrs()[0];
        let mut forwarded = 0;
        for bytes in behind {
            let first = Before::new(bytes, address, &origin).await;
            let is_there = usize::from(!bytes.is_empty());
            forwarded += is_there;
            for (name, request, fate) in &cases {
                let played = play(address, &origin, &first, (request, *fate));
                let played = guarded(*name, played).await;
                forwarded += is_there + usize::from(*fate == Forwarded);
                let said = |error| format!("{name} behind {bytes:?}: {error}");
                wrong.extend(played.err().map(said));
            }
        }
        let all = came(&origin);
        let starts: Vec<_> = all
            .match_indices(" HTTP/1.1\r\n")
            .map(|(at, _)| at)
            .collect();
        if starts.len() != forwarded || all.contains("/smuggled") {
            wrong.push(format!("{} requests came, not {forwarded}", starts.len()));
        }
        for recording in origin.recordings() {
            let text = recording.text();
            // Bodies have no line that looks like a request line.
            let mut ends = text.match_indices(" HTTP/1.1\r\n").skip(1);
            let mut begin = 0;
            while begin < text.len() {
                let end = ends.next().map_or(text.len(), |(at, _)| {
                    text[..at].rfind('\n').map_or(0, |line| line + 1)
                });
                let request = &text[begin..end];
                wrong.extend(
                    check(request)
                        .err()
                        .map(|error| format!("{error}: {request:?}")),
                );
                begin = end;
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
