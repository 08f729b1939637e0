//! Requests of HTTP/1.1 of which bytes are missing: no destination takes what there is for a request.

use std::net::SocketAddr;
use std::time::Duration;

use futures_util::future::join_all;
use proxy_runtime::server::{DataRate, Limits};
use serde_json::json;
use testkit::raw::{RawClient, RawOrigin, Recording};
use testkit::time::{eventually, guarded};

use crate::changed;
use crate::server::ways::{as_bytes_within, over_types_within, proxy};

const GET: &str = "GET /p HTTP/1.1\r\nHost: t.example\r\nX-A: b\r\n\r\n";
const LENGTH: &str = "POST /p HTTP/1.1\r\nHost: t.example\r\nContent-Length: 5\r\n\r\nhello";
const CHUNKED: &str = "POST /p HTTP/1.1\r\nHost: t.example\r\nTransfer-Encoding: chunked\r\nTrailer: X-T\r\n\r\n\
    5;a=b\r\nhello\r\n1a\r\nGET /smuggled HTTP/1.1\r\n\r\n\r\n0\r\nX-T: t\r\n\r\n";

/// The first bytes of whole requests: of the first one each number of bytes, of the others those that end in the body.
fn parts() -> Vec<&'static [u8]> {
    let from = |request: &'static str, least: usize| {
        let lengths = least..request.len();
        lengths.map(move |length| &request.as_bytes()[..length])
    };
    let body = |request: &str| request.find("\r\n\r\n").expect("a head ends") + 4;
    from(GET, 1)
        .chain(from(LENGTH, body(LENGTH)))
        .chain(from(CHUNKED, body(CHUNKED)))
        .collect()
}

/// The time that a client gets to send the rest, and that a busy machine has to read what all of them have sent.
const SOON: Duration = Duration::from_secs(3);

/// The behaviour of a client that has sent a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Then {
    /// Ends its half of the connection, and reads.
    HalfCloses,
    /// Resets the connection.
    Resets,
    /// Waits until its time is over.
    Waits,
}

/// Answers whole requests.
fn origin() -> RawOrigin {
    RawOrigin::script(|mut connection| async move {
        while connection.read_whole_request().await.is_ok() {
            connection
                .write_all("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
                .await?;
        }
        Ok(())
    })
}

/// Returns what is wrong with what became of a part of a request, behind one that is whole.
async fn play(address: SocketAddr, part: &[u8], then: Then) -> Result<(), String> {
    let mut client = RawClient::connect(address).await.unwrap();
    let first = "GET /first HTTP/1.1\r\nHost: t.example\r\n\r\n".as_bytes();
    client.write_all([first, part].concat()).await.unwrap();
    let response = client.read_response().await;
    let response = response.map_err(|error| format!("the first one: {error}"))?;
    if response.status() != 200 {
        return Err(format!("{} for the first one", response.status()));
    }
    match then {
        Then::Resets => {
            client.reset();
            return Ok(());
        }
        Then::HalfCloses => client.half_close().await.unwrap(),
        Then::Waits => {}
    }
    // It may be told why, and is told of no success.
    let rest = client.read_to_end().await.unwrap_or_default();
    match rest.is_empty() || rest.starts_with(b"HTTP/1.1 4") {
        true => Ok(()),
        false => Err(format!("it was told {:?}", String::from_utf8_lossy(&rest))),
    }
}

/// Number of whole requests that were sent over a connection.
fn whole_requests(recording: &Recording) -> usize {
    let text = recording.text();
    let mut rest = &*text;
    let mut whole = 0;
    loop {
        let Some((head, body)) = rest.split_once("\r\n\r\n") else {
            return whole;
        };
        let head = head.to_ascii_lowercase();
        let after = if head.contains("transfer-encoding: chunked") {
            after_chunks(body)
        } else if let Some((_, length)) = head.split_once("content-length: ") {
            let digits = length.split("\r\n").next().unwrap();
            body.get(digits.parse().unwrap()..)
        } else {
            Some(body)
        };
        let Some(after) = after else {
            return whole;
        };
        assert!(!head.starts_with("get /smuggled"), "{text:?}");
        whole += 1;
        rest = after;
    }
}

/// Returns the bytes behind a chunked body, if the body is whole.
fn after_chunks(mut body: &str) -> Option<&str> {
    loop {
        let (size, rest) = body.split_once("\r\n")?;
        let size = size.split(';').next().unwrap().trim();
        let size = usize::from_str_radix(size, 16).unwrap();
        if size == 0 {
            // Trailers end with an empty line.
            return match rest.strip_prefix("\r\n") {
                Some(after) => Some(after),
                None => rest.split_once("\r\n\r\n").map(|(_, after)| after),
            };
        }
        body = rest.get(size..)?.strip_prefix("\r\n")?;
    }
}

/// Plays all parts at once, and asserts that the destination has got those requests alone that are whole.
async fn no_part_is_taken_for_a_request(then: Then) {
    let parts = parts();
    let limits = match then {
        Then::Waits => changed(|limits: &mut Limits| {
            limits.header_timeout = SOON;
            limits.data_rate = Some(DataRate::new(1 << 20, SOON));
        }),
        Then::HalfCloses | Then::Resets => Limits::default(),
    };
    let mut wrong = Vec::new();
    for serve in [as_bytes_within, over_types_within] {
        let origin = origin();
        let proxy = proxy(&origin, &json!({}), "");
        let server = serve(&proxy, limits.clone());
        let address = server.local_addrs()[0];
        let played = parts.iter().map(|part| async move {
            let what = String::from_utf8_lossy(part).into_owned();
            let played = guarded(what.clone(), play(address, part, then)).await;
            played.err().map(|error| format!("{what:?}: {error}"))
        });
        wrong.extend(join_all(played).await.into_iter().flatten());
        // The proxy serves on, over whichever connection it has kept.
        let last = RawClient::exchange(address, GET).await.unwrap();
        assert_eq!(last.status(), 200);
        let whole = || {
            let recordings = origin.recordings();
            recordings.iter().map(whole_requests).sum::<usize>()
        };
        let expected = parts.len() + 1;
        eventually("the whole requests", async || whole() >= expected).await;
        assert_eq!(whole(), expected);
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[tokio::test]
async fn what_a_client_never_sends_is_no_request() {
    for then in [Then::HalfCloses, Then::Resets] {
        no_part_is_taken_for_a_request(then).await;
    }
}

/// The number of cases is what SECURITY.md says, over both lanes.
#[tokio::test]
async fn what_a_client_waits_to_send_is_no_request() {
    let documented = concat!(env!("CARGO_MANIFEST_DIR"), "/../SECURITY.md");
    let documented = std::fs::read_to_string(documented).unwrap();
    let row = format!("| HTTP/1.1, bytes that never come | {} |", parts().len());
    assert!(
        documented.contains(&row),
        "SECURITY.md does not have {row:?}"
    );
    no_part_is_taken_for_a_request(Then::Waits).await;
}
