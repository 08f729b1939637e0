//! Frames of a Serf agent.

use std::fmt::Debug;
use std::time::Duration;

use discovery_serf::client::{ClientError, ConnectOptions, EventFilter, MemberFilter, SerfClient};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::{Instant, timeout};

use crate::input::{MAX_BYTES, bytes_of_lines, check_message, paused};

/// Maximum size of a message in bytes.
const MAX_FRAME: usize = 4_096;

/// Maximum number of queued events.
const MAX_EVENTS: usize = 8;

/// Maximum duration of all requests: the agent has at most 15 s for each of them.
const LONGEST: Duration = Duration::from_secs(6 * 15);

/// The answer to the handshake.
const WELCOME: &[u8] = b"\x82\xa5Error\xa0\xa3Seq\x01";

/// Fuzzes the bytes of an agent in Rust's notation: `\xa0` is a byte, and so is every character
/// except a backslash. Line ends are ignored.
///
/// The agent sends them after it has read the requests 2 to 7: `stream`, `members`,
/// `members-filtered`, `stats`, `join` and `event`.
///
/// * Every request ends in time, even if the agent stays connected.
/// * The bytes have the same meaning in pieces of any size.
/// * Errors are short and printable. The queue of events keeps to its limit.
pub fn serf_frames(data: &[u8]) {
    let bytes = bytes_of_lines(&data[..data.len().min(MAX_BYTES)]);
    let whole = paused().block_on(outcome(&bytes, bytes.len(), false));
    // Sizes of the pieces, independent of the input.
    for piece in [1, 7, 64] {
        let pieces = paused().block_on(outcome(&bytes, piece, false));
        assert_eq!(pieces, whole, "in pieces of {piece}");
    }
    paused().block_on(outcome(&bytes, bytes.len(), true));
}

/// The results of every request, of the stream, and of the connection.
async fn outcome(bytes: &[u8], piece: usize, stays: bool) -> Vec<String> {
    let (mut agent, io) = tokio::io::duplex(1 << 20);
    let say = async {
        hear(&mut agent, 1).await;
        agent.write_all(WELCOME).await.expect("the client is there");
        hear(&mut agent, 6).await;
        for piece in bytes.chunks(piece.max(1)) {
            // The client may disconnect before the end of the bytes.
            if agent.write_all(piece).await.is_err() {
                break;
            }
            tokio::task::yield_now().await;
        }
        stays.then_some(agent)
    };
    let options = ConnectOptions::new("fuzz")
        .with_max_frame(MAX_FRAME)
        .with_max_queued_events(MAX_EVENTS);
    let begin = Instant::now();
    let (outcome, _agent) = timeout(LONGEST, async {
        tokio::join!(ask(io, &options, stays), say)
    })
    .await
    .expect("every request comes to an end in time");
    // No request waits for an agent that has disconnected.
    assert!(stays || begin.elapsed() < Duration::from_secs(1));
    outcome
}

/// Reads `requests` requests. Each header has one number.
async fn hear(agent: &mut tokio::io::DuplexStream, requests: usize) {
    let mut heard = Vec::new();
    let number = b"\xa3Seq";
    while heard
        .windows(number.len())
        .filter(|word| word == number)
        .count()
        < requests
    {
        let read = agent
            .read_buf(&mut heard)
            .await
            .expect("a pipe does not fail");
        assert!(read > 0, "the client has gone");
    }
}

async fn ask(io: tokio::io::DuplexStream, options: &ConnectOptions, stays: bool) -> Vec<String> {
    let client = SerfClient::connect_over(io, options).await;
    let client = client.expect("the agent has answered the handshake");
    let (events, some) = (EventFilter::members(), MemberFilter::new().with_name("a"));
    let (stream, members, filtered, stats, joined, sent) = tokio::join!(
        client.stream(&events),
        client.members(),
        client.members_filtered(&some),
        client.stats(),
        client.join(&["a"], false),
        client.event("e", b"", false),
    );
    let mut outcome = vec![
        noted(&members),
        noted(&filtered),
        noted(&stats),
        noted(&joined),
        noted(&sent),
        noted(&stream.as_ref().map(|_| "a stream").map_err(Clone::clone)),
    ];
    if stays {
        return outcome;
    }
    client.closed().await;
    if let Ok(mut stream) = stream {
        let before = outcome.len();
        while let Some(event) = stream.next().await {
            if let Err(error) = &event {
                check_message(&error.to_string());
            }
            outcome.push(format!("{event:?}"));
        }
        // One more item reports the number of lost events.
        assert!(outcome.len() - before <= MAX_EVENTS + 1);
    }
    let end = client.end().expect("the connection has ended");
    outcome.push(noted(&Err::<(), _>(end.clone())));
    outcome
}

fn noted<T: Debug>(result: &Result<T, ClientError>) -> String {
    match result {
        Ok(value) => format!("{value:?}"),
        Err(error) => {
            let mut cause: Option<&dyn std::error::Error> = Some(error);
            while let Some(error) = cause {
                check_message(&error.to_string());
                cause = error.source();
            }
            format!("{:?} {:?}", error.kind(), error.agent_error())
        }
    }
}
