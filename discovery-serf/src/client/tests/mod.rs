//! The client against scripted agents.

mod calls;
mod hostile;
mod lifetime;
mod properties;
mod protocol;
mod streams;
mod tcp;
mod timing;

use std::future::Future;

use discovery_core::text::with_causes;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, ReadHalf, WriteHalf};

use super::*;
use crate::member::{Member, Tags};
use crate::wire::frames::FrameReader;
use crate::wire::messages::{Request, RequestHeader, ResponseHeader, encode_event, encode_members};

/// An agent that a test scripts.
struct Script {
    requests: FrameReader<ReadHalf<DuplexStream>>,
    replies: WriteHalf<DuplexStream>,
}

impl Script {
    /// Creates a script and the client's end of the connection.
    fn new() -> (Self, DuplexStream) {
        Self::with_room(1 << 20)
    }

    /// Creates the same with this buffer size between them.
    fn with_room(bytes: usize) -> (Self, DuplexStream) {
        let (agent, client) = tokio::io::duplex(bytes);
        let (requests, replies) = tokio::io::split(agent);
        let requests = FrameReader::new(requests, 4 << 20);
        (Self { requests, replies }, client)
    }

    /// The next request, with its number.
    async fn request(&mut self) -> (u64, Request) {
        self.next_request().await.expect("the client has gone")
    }

    /// Reads the next request. Returns `None` when the client has closed the connection.
    async fn next_request(&mut self) -> Option<(u64, Request)> {
        let header = self.requests.next().await.unwrap()?;
        let header = RequestHeader::decode(&header).unwrap();
        let body = match header.takes_body() {
            true => self.requests.next().await.unwrap().unwrap(),
            false => Default::default(),
        };
        Some((header.seq, Request::decode(&header, &body).unwrap()))
    }

    /// The number of the next request, which must be this one.
    async fn expect(&mut self, expected: &Request) -> u64 {
        let (seq, request) = self.request().await;
        assert_eq!(request, *expected);
        seq
    }

    async fn say(&mut self, bytes: &[u8]) {
        self.replies.write_all(bytes).await.unwrap();
    }

    /// A header.
    async fn reply(&mut self, seq: u64, error: &str) {
        self.say(&header(seq, error)).await;
    }

    async fn ok(&mut self, seq: u64) {
        self.reply(seq, "").await;
    }

    async fn members(&mut self, seq: u64, members: &[Member]) {
        let mut out = header(seq, "");
        encode_members(members, &mut out);
        self.say(&out).await;
    }

    async fn tell(&mut self, stream: u64, event: &Event) {
        self.say(&record(stream, event)).await;
    }

    /// Returns when the client has closed the connection.
    async fn closed(mut self) {
        assert!(self.requests.next().await.unwrap().is_none());
    }
}

fn header(seq: u64, error: &str) -> Vec<u8> {
    let mut out = Vec::new();
    let error = error.to_owned();
    ResponseHeader { seq, error }.encode(&mut out);
    out
}

fn record(stream: u64, event: &Event) -> Vec<u8> {
    let mut out = header(stream, "");
    encode_event(event, &mut out);
    out
}

fn options() -> ConnectOptions {
    ConnectOptions::new("agent:7373")
}

/// A client that has been introduced to an agent.
async fn introduced() -> (Script, SerfClient) {
    introduced_with(&options()).await
}

async fn introduced_with(options: &ConnectOptions) -> (Script, SerfClient) {
    let (mut agent, io) = Script::new();
    let (client, ()) = tokio::join!(SerfClient::connect_over(io, options), async {
        let seq = agent.expect(&Request::Handshake { version: 1 }).await;
        agent.ok(seq).await;
    });
    (agent, client.unwrap())
}

/// A client with a stream, and its number.
async fn streaming_with(options: &ConnectOptions) -> (Script, SerfClient, EventStream, u64) {
    let (mut agent, client) = introduced_with(options).await;
    let all = EventFilter::all();
    let (stream, seq) = tokio::join!(client.stream(&all), async {
        let filter = "*".to_owned();
        let seq = agent.expect(&Request::Stream { filter }).await;
        agent.ok(seq).await;
        seq
    });
    (agent, client, stream.unwrap(), seq)
}

async fn streaming() -> (Script, SerfClient, EventStream, u64) {
    streaming_with(&options()).await
}

/// Returns the result of a request to which the agent responds as given.
async fn answered<T>(
    request: impl Future<Output = T>,
    agent: &mut Script,
    answer: impl AsyncFnOnce(&mut Script, u64),
) -> T {
    let (result, ()) = tokio::join!(request, async {
        let (seq, _) = agent.request().await;
        answer(agent, seq).await;
    });
    result
}

/// Checks that the client still works.
async fn check_goes_on(agent: &mut Script, client: &SerfClient) {
    let expected = [member("check")];
    let members = answered(client.members(), agent, async |agent, seq| {
        agent.members(seq, &expected).await;
    });
    assert_eq!(members.await.unwrap(), expected);
}

fn member(name: &str) -> Member {
    let tags = Tags::from([("service", name)]);
    Member::new(name, "10.0.0.1".parse().unwrap(), tags)
}

fn user_event(number: u64) -> Event {
    Event::User {
        name: "deploy".into(),
        payload: b"v1".to_vec(),
        logical_time: number,
        coalesce: false,
    }
}

fn kind<T: fmt::Debug>(result: &Result<T, ClientError>) -> ClientErrorKind {
    result.as_ref().unwrap_err().kind()
}

#[tokio::test]
async fn what_is_sent_is_what_was_captured() {
    use crate::wire::messages::golden::{self, bytes};

    let (mut agent, io) = tokio::io::duplex(1 << 16);
    let script = async {
        let conversation = [
            (golden::HANDSHAKE, 1),
            (golden::AUTH, 2),
            (golden::STREAM, 3),
            (golden::MEMBERS, 4),
        ];
        for (golden, seq) in conversation {
            let mut sent = vec![0; golden.len() / 2];
            agent.read_exact(&mut sent).await.unwrap();
            assert_eq!(sent, bytes(golden));
            agent.write_all(&header(seq, "")).await.unwrap();
        }
        let body = bytes(golden::MEMBERS_REPLY[1]);
        agent.write_all(&body).await.unwrap();
        agent
    };
    let client = async {
        let options = options().with_auth_key("sekrit");
        let client = SerfClient::connect_over(io, &options).await.unwrap();
        let filter = EventFilter::member_events([MemberEventKind::Join]);
        let stream = client.stream(&filter).await.unwrap();
        (client.members().await.unwrap(), stream)
    };
    let (_agent, (members, _stream)) = tokio::join!(script, client);
    let names: Vec<_> = members.iter().map(|member| &*member.name).collect();
    assert_eq!(names, ["o1", "gw", "p2"]);
}
