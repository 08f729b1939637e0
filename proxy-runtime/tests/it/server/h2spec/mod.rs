//! The cases of h2spec 2.6, the test program for servers of HTTP/2, restated and played over TLS against the proxy.
//!
//! No package registry has that program, and its source is had from Go's module mirror only. Its
//! cases are named as there: by its section, and by what the client does.

mod frames;
mod generic;
mod streams;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use proxy_runtime::server::{Certificate, CertificateStore, Listener, Server, TlsServerConfig};
use serde_json::json;
use testkit::certs::{Alpn, CertificateAuthority, provider};
use testkit::raw::RawOrigin;
use testkit::raw::frame::{self, Frame};
use testkit::time::guarded;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;
use tokio_rustls::{TlsConnector, rustls};

use crate::server::support::loopback;
use crate::server::ways::proxy;

const PROTOCOL: u32 = 1;
const FLOW_CONTROL: u32 = 3;
const STREAM_CLOSED: u32 = 5;
const FRAME_SIZE: u32 = 6;
const REJECTED: u32 = 7;
const CANCEL: u32 = 8;
const COMPRESSION: u32 = 9;

const INITIAL_WINDOW: u16 = 4;

/// The fields of a valid request.
const FIELDS: [(&str, &str); 4] = [
    (":method", "GET"),
    (":scheme", "https"),
    (":path", "/"),
    (":authority", "h2.example"),
];

/// A step of the client.
enum Step {
    Send(Vec<u8>),
    /// Waits until its settings are acknowledged.
    Settled,
    /// Waits for the end of a stream.
    Ended(u32),
    /// Waits for data.
    Data,
}

/// The required reaction of the server.
#[derive(Clone, Copy, Debug)]
enum Wanted {
    /// The settings of the server.
    Settings,
    Pong,
    /// The acknowledgement of settings.
    Settled,
    /// The head of the response on a stream.
    Answer(u32),
    /// A frame with this number of bytes of a response.
    Data(usize),
    /// The end of a stream, or of the connection, with one of these codes, or without any of the connection.
    StreamError(&'static [u32]),
    /// The end of the connection, with one of these codes or without any.
    ConnectionError(&'static [u32]),
    Goaway(u32),
    Close,
    PongOrClose,
}

/// A case in the making.
struct Case {
    at: &'static str,
    what: &'static str,
    /// True if the settings of both sides are exchanged first.
    is_open: bool,
    steps: Vec<Step>,
    wanted: Wanted,
}

fn case(at: &'static str, what: &'static str) -> Case {
    Case {
        at,
        what,
        is_open: true,
        steps: Vec::new(),
        wanted: Wanted::Close,
    }
}

impl Case {
    fn step(mut self, step: Step) -> Self {
        self.steps.push(step);
        self
    }

    fn raw(self, bytes: &[u8]) -> Self {
        self.step(Step::Send(bytes.to_vec()))
    }

    fn frame(self, frame: &Frame) -> Self {
        self.step(Step::Send(frame.encode()))
    }

    fn of(self, kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Self {
        self.frame(&Frame::new(kind, flags, stream, payload))
    }

    fn settings(self, settings: &[(u16, u32)]) -> Self {
        self.frame(&Frame::settings(settings))
    }

    fn get(self, stream: u32) -> Self {
        self.frame(&Frame::headers(stream, &FIELDS, true))
    }

    /// A request whose body follows.
    fn post(self, stream: u32) -> Self {
        self.frame(&Frame::headers(stream, &post(), false))
    }

    /// A request with these fields besides.
    fn get_with(self, more: &[(&str, &str)]) -> Self {
        self.frame(&Frame::headers(1, &[&FIELDS[..], more].concat(), true))
    }

    fn data(self, stream: u32, bytes: &[u8], is_last: bool) -> Self {
        self.frame(&Frame::data(stream, bytes, is_last))
    }

    /// Says that a stream depends on another one.
    fn priority(self, stream: u32, on: u32, weight: u8) -> Self {
        let payload = [&on.to_be_bytes()[..], &[weight]].concat();
        self.of(frame::PRIORITY, 0, stream, &payload)
    }

    fn window(self, stream: u32, more: u32) -> Self {
        self.of(frame::WINDOW_UPDATE, 0, stream, &more.to_be_bytes())
    }

    fn ping(self) -> Self {
        self.of(frame::PING, 0, 0, PING)
    }

    fn wants(mut self, wanted: Wanted) -> Self {
        self.wanted = wanted;
        self
    }
}

const PING: &[u8; 8] = b"pingpong";

fn post() -> [(&'static str, &'static str); 4] {
    let [_, others @ ..] = FIELDS;
    let [scheme, path, authority] = others;
    [(":method", "POST"), scheme, path, authority]
}

/// Fields that make a block of several frames.
fn more_fields() -> Vec<u8> {
    frame::header_block(&[("x-more", "1")])
}

fn cases() -> Vec<Case> {
    [
        generic::cases(),
        generic::hpack(),
        frames::cases(),
        streams::cases(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// A client of HTTP/2 over TLS that sends what it is told.
struct Client {
    stream: TlsStream<TcpStream>,
    /// Read and not looked at yet, since something else was waited for.
    passed: Vec<Frame>,
}

impl Client {
    async fn read(&mut self) -> io::Result<Frame> {
        let mut head = [0; 9];
        self.stream.read_exact(&mut head).await?;
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
        let mut payload = vec![0; length as usize];
        self.stream.read_exact(&mut payload).await?;
        let stream = u32::from_be_bytes([head[5] & 0x7f, head[6], head[7], head[8]]);
        Ok(Frame::new(head[3], head[4], stream, payload))
    }

    /// Reads until there is a frame that is waited for; keeps the others if they may be wanted.
    async fn until(&mut self, is_it: impl Fn(&Frame) -> bool) -> io::Result<()> {
        loop {
            let frame = self.read().await?;
            if is_it(&frame) {
                return Ok(());
            }
            self.passed.push(frame);
        }
    }

    async fn step(&mut self, step: &Step) -> io::Result<()> {
        match step {
            // The server may have closed: that is to be seen, not that more cannot be sent.
            Step::Send(bytes) => {
                let _ = self.stream.write_all(bytes).await;
                let _ = self.stream.flush().await;
                Ok(())
            }
            Step::Settled => self.until(is_settled).await,
            Step::Data => self.until(|frame| frame.kind == frame::DATA).await,
            Step::Ended(stream) => {
                let ends = |frame: &Frame| match frame.kind {
                    frame::DATA | frame::HEADERS => frame.has(frame::END_STREAM),
                    frame::RST_STREAM => true,
                    _ => false,
                };
                self.until(|frame| frame.stream == *stream && ends(frame))
                    .await
            }
        }
    }

    async fn open(&mut self) -> io::Result<()> {
        self.stream.write_all(frame::PREFACE).await?;
        let settings = Frame::settings(&[(INITIAL_WINDOW, 65_535)]).encode();
        self.stream.write_all(&settings).await?;
        self.until(|frame| frame.kind == frame::SETTINGS && !frame.has(frame::ACK))
            .await?;
        let acknowledged = Frame::new(frame::SETTINGS, frame::ACK, 0, []).encode();
        self.stream.write_all(&acknowledged).await?;
        self.until(is_settled).await?;
        self.passed.clear();
        Ok(())
    }
}

fn is_settled(frame: &Frame) -> bool {
    frame.kind == frame::SETTINGS && frame.has(frame::ACK)
}

/// Returns whether a frame, or the end of the connection, is the required reaction; `None` if it decides nothing.
fn judge(wanted: Wanted, frame: Option<&Frame>) -> Option<bool> {
    let Some(frame) = frame else {
        return Some(matches!(
            wanted,
            Wanted::StreamError(_)
                | Wanted::ConnectionError(_)
                | Wanted::Close
                | Wanted::PongOrClose
        ));
    };
    let code = frame.error_code();
    let is_pong = frame.kind == frame::PING && frame.has(frame::ACK) && frame.payload == PING;
    match wanted {
        Wanted::Settings if frame.kind == frame::SETTINGS => Some(!frame.has(frame::ACK)),
        Wanted::Settled if frame.kind == frame::SETTINGS => Some(frame.has(frame::ACK)),
        Wanted::Pong | Wanted::PongOrClose if is_pong => Some(true),
        Wanted::Answer(stream) if frame.kind == frame::HEADERS => Some(frame.stream == stream),
        Wanted::Data(length) if frame.kind == frame::DATA => Some(frame.payload.len() == length),
        Wanted::StreamError(codes) => code.map(|code| codes.contains(&code)),
        Wanted::ConnectionError(codes) if frame.kind == frame::GOAWAY => {
            code.map(|code| codes.contains(&code))
        }
        Wanted::Goaway(wanted) if frame.kind == frame::GOAWAY => Some(code == Some(wanted)),
        Wanted::Close | Wanted::PongOrClose | Wanted::ConnectionError(_) | Wanted::Goaway(_) => {
            None
        }
        // What is right is not to end in an error.
        _ => code.map(|_| false),
    }
}

/// Returns what the server did instead of what is wanted.
async fn play(mut client: Client, case: &Case) -> Result<(), String> {
    let failed = |error: io::Error| format!("{error} before the end");
    if case.is_open {
        client.open().await.map_err(failed)?;
    }
    for step in &case.steps {
        client.step(step).await.map_err(failed)?;
    }
    // What came before is looked at only where it was not waited for.
    let waits = case.steps.iter().any(|step| !matches!(step, Step::Send(_)));
    if waits {
        client.passed.clear();
    }
    loop {
        let frame = client.read().await.ok();
        match judge(case.wanted, frame.as_ref()) {
            Some(true) => return Ok(()),
            Some(false) => return Err(format!("{frame:?} instead of {:?}", case.wanted)),
            None => {}
        }
    }
}

/// The number of cases is what SECURITY.md says.
#[tokio::test]
async fn the_cases_of_h2spec_over_tls() {
    let cases = cases();
    let documented = concat!(env!("CARGO_MANIFEST_DIR"), "/../SECURITY.md");
    let documented = std::fs::read_to_string(documented).unwrap();
    let row = format!("| HTTP/2, the cases of h2spec | {} |", cases.len());
    assert!(
        documented.contains(&row),
        "SECURITY.md does not have {row:?}"
    );
    let answer = "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nanswer";
    let origin = RawOrigin::script(move |mut connection| async move {
        while connection.read_whole_request().await.is_ok() {
            connection.write_all(answer).await?;
        }
        Ok(())
    });
    let proxy = proxy(&origin, &json!({}), "");
    let authority = CertificateAuthority::new("test");
    let identity = authority.issue(&["h2.example"]);
    let certificate =
        Certificate::from_der(vec![identity.certificate()], identity.key(), &provider());
    let store = CertificateStore::new([certificate.unwrap()]).unwrap();
    let tls = TlsServerConfig::new(provider(), store).unwrap();
    let server = Server::for_proxy(&proxy).with_listener(Listener::https(loopback(), tls));
    let server = server.bind().unwrap().start().unwrap();
    let address = server.local_addrs()[0];
    let connector = TlsConnector::from(Arc::new(authority.client_config(Alpn::Http2)));
    let mut wrong = Vec::new();
    for case in &cases {
        let name = format!("{} {}", case.at, case.what);
        let played = async {
            let stream = connect(&connector, address).await;
            let client = Client {
                stream,
                passed: Vec::new(),
            };
            play(client, case).await
        };
        let played = guarded(name.clone(), played).await;
        wrong.extend(played.err().map(|error| format!("{name}: {error}")));
    }
    assert!(
        wrong.is_empty(),
        "{} of {}:\n{}",
        wrong.len(),
        cases.len(),
        wrong.join("\n")
    );
}

async fn connect(connector: &TlsConnector, address: SocketAddr) -> TlsStream<TcpStream> {
    let stream = TcpStream::connect(address).await.unwrap();
    let name = rustls::pki_types::ServerName::try_from("h2.example").unwrap();
    connector.connect(name, stream).await.unwrap()
}
