//! Messages in the answers of a Serf agent.

use discovery_serf::Member;
use discovery_serf::client::{
    ClientError, ClientErrorKind, ConnectOptions, Event, EventFilter, SerfClient, Stats,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::input::{MAX_BYTES, bytes_of_lines, check_message, paused};

/// Maximum size of a message in bytes. No input is as long.
const MAX_FRAME: usize = 2 * MAX_BYTES;

/// The header of an answer without its number.
const HEADER: &[u8] = b"\x82\xa5Error\xa0\xa3Seq";

/// Fuzzes the body of an answer: bytes in Rust's notation, as in `serf_frames`.
///
/// * As an answer to `members` it is a list of members or invalid. Invalid bytes end the
///   connection. The list is no longer than the body has room for.
/// * An unknown field makes no difference.
/// * The same members in an event have the same value.
/// * As an answer to `stats` it has its sections in order, or is invalid.
pub fn serf_messages(data: &[u8]) {
    let body = bytes_of_lines(&data[..data.len().min(MAX_BYTES)]);
    let listed = paused().block_on(members(&body));
    if let Some(listed) = &listed {
        // The shortest member is `{Name: ""}`.
        assert!(listed.len() * 7 <= body.len());
    }
    if let Some(more) = with_field(&body, b"\xa3Any\x93\xc0\x01\x81\xa1k\xc3") {
        assert_eq!(paused().block_on(members(&more)), listed);
    }
    if let Some(event) = with_field(&body, b"\xa5Event\xabmember-join")
        && let Some(told) = paused().block_on(told(&event))
    {
        assert_eq!(told, listed.unwrap_or_default());
    }
    if let Some(stats) = paused().block_on(stats(&body)) {
        let sections: Vec<&str> = stats.sections().collect();
        assert!(sections.is_sorted());
    }
}

/// The body with another field at its beginning, if it is a short map.
fn with_field(body: &[u8], field: &[u8]) -> Option<Vec<u8>> {
    let (marker, rest) = body.split_first()?;
    let is_short = (0x80..0x8f).contains(marker);
    is_short.then(|| [&[marker + 1], field, rest].concat())
}

/// The members of an answer. `None` for an invalid one.
async fn members(body: &[u8]) -> Option<Vec<Member>> {
    let (client, agent) = connected().await;
    let (members, _agent) = tokio::join!(client.members(), answer(agent, body));
    or_nonsense(&client, members)
}

/// The stats of an answer. `None` for an invalid one.
async fn stats(body: &[u8]) -> Option<Stats> {
    let (client, agent) = connected().await;
    let (stats, _agent) = tokio::join!(client.stats(), answer(agent, body));
    or_nonsense(&client, stats)
}

/// The members of an event. `None` for an event without members.
async fn told(body: &[u8]) -> Option<Vec<Member>> {
    let (client, agent) = connected().await;
    let record = [HEADER, b"\x02", body].concat();
    let filter = EventFilter::members();
    let (stream, agent) = tokio::join!(client.stream(&filter), answer(agent, &record));
    let mut stream = stream.expect("the agent has agreed");
    drop(agent);
    match stream.next().await? {
        Ok(Event::Member { members, .. }) => Some(members),
        Ok(_) => None,
        Err(error) => {
            check_message(&error.to_string());
            None
        }
    }
}

/// Creates a connected client, and the other end.
async fn connected() -> (SerfClient, tokio::io::DuplexStream) {
    let (mut agent, io) = tokio::io::duplex(1 << 20);
    let options = ConnectOptions::new("fuzz").with_max_frame(MAX_FRAME);
    let (client, ()) = tokio::join!(SerfClient::connect_over(io, &options), async {
        let mut handshake = [0; 34];
        let read = agent.read_exact(&mut handshake).await;
        read.expect("there is a handshake");
        let welcome = [HEADER, b"\x01"].concat();
        agent
            .write_all(&welcome)
            .await
            .expect("the client is there");
    });
    (client.expect("it is welcome"), agent)
}

/// Answers the request after the handshake with a header and these bytes.
async fn answer(mut agent: tokio::io::DuplexStream, body: &[u8]) -> tokio::io::DuplexStream {
    let mut request = [0; 1_024];
    let read = agent.read(&mut request).await;
    assert!(read.is_ok_and(|read| read > 0), "there is a request");
    let answer = [HEADER, b"\x02", body].concat();
    // The client may disconnect before the end of the bytes.
    let _ = agent.write_all(&answer).await;
    agent
}

fn or_nonsense<T>(client: &SerfClient, result: Result<T, ClientError>) -> Option<T> {
    let error = match result {
        Ok(value) => return Some(value),
        Err(error) => error,
    };
    check_message(&error.to_string());
    match error.kind() {
        ClientErrorKind::Protocol => {}
        // The answer is incomplete.
        ClientErrorKind::TimedOut => assert!(client.is_closed()),
        kind => panic!("{kind:?}"),
    }
    None
}
