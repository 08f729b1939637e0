//! A connection of the origin: requests in sequence, with prepared answers.

use std::io::{self, Read, Write};
use std::net::TcpStream;

use super::reply::{Choice, Replies};
use crate::framing::{Body, Framing};
use crate::poll::{Interest, Ready, would_block};

/// Maximum number of request header fields; proxies add a few.
const FIELDS: usize = 64;

/// Maximum size of a request head in bytes.
const HEAD: usize = 64 << 10;

pub(super) struct OriginConnection {
    socket: TcpStream,
    state: OriginState,
    /// The beginning of an incomplete head.
    partial: Vec<u8>,
    /// True if the connection closes after the current answer.
    closes: bool,
    interest: Interest,
}

enum OriginState {
    Head,
    /// The rest of a request body, and the answer to send at its end.
    Body(Body, Answer),
    /// An answer that the socket took in part, and the number of bytes written.
    Answer(Answer, usize),
}

enum Answer {
    Rendered(Choice),
    Echo(Vec<u8>),
}

impl Answer {
    fn bytes<'a>(&'a self, replies: &'a Replies) -> &'a [u8] {
        match self {
            Self::Rendered(choice) => replies.bytes(*choice),
            Self::Echo(bytes) => bytes,
        }
    }
}

impl OriginConnection {
    pub(super) fn new(socket: TcpStream) -> Self {
        Self {
            socket,
            state: OriginState::Head,
            partial: Vec::new(),
            closes: false,
            interest: Interest::Read,
        }
    }

    pub(super) fn socket(&self) -> &TcpStream {
        &self.socket
    }

    /// The new interest in socket events, if it has changed.
    pub(super) fn changed_interest(&mut self) -> Option<Interest> {
        let wanted = match self.state {
            OriginState::Answer(..) => Interest::Write,
            OriginState::Head | OriginState::Body(..) => Interest::Read,
        };
        (wanted != self.interest).then(|| {
            self.interest = wanted;
            wanted
        })
    }

    /// Reads or writes once. Returns `false` when the connection has ended.
    pub(super) fn serve(
        &mut self,
        event: &Ready,
        replies: &Replies,
        buffer: &mut [u8],
    ) -> io::Result<bool> {
        if matches!(self.state, OriginState::Answer(..)) {
            self.write(replies)?;
            if self.has_ended() {
                return Ok(false);
            }
            // Bytes of a pipelined request may already be in the buffer.
            if matches!(self.state, OriginState::Head) && !self.partial.is_empty() {
                let kept = std::mem::take(&mut self.partial);
                self.consume(&kept, replies)?;
            }
            return Ok(!self.has_ended());
        }
        if !event.readable {
            return Ok(true);
        }
        let read = match self.socket.read(buffer) {
            Err(error) if would_block(&error) => return Ok(true),
            read => read?,
        };
        if read == 0 {
            return Ok(false);
        }
        if self.partial.is_empty() {
            self.consume(&buffer[..read], replies)?;
        } else {
            let mut all = std::mem::take(&mut self.partial);
            all.extend_from_slice(&buffer[..read]);
            self.consume(&all, replies)?;
        }
        Ok(!self.has_ended())
    }

    /// Returns true if the last answer has been written.
    fn has_ended(&self) -> bool {
        self.closes && matches!(self.state, OriginState::Head)
    }

    /// Parses incoming bytes and answers each complete request.
    fn consume(&mut self, mut bytes: &[u8], replies: &Replies) -> io::Result<()> {
        loop {
            match &mut self.state {
                OriginState::Answer(..) => {
                    self.partial.extend_from_slice(bytes);
                    return Ok(());
                }
                OriginState::Body(body, _) => {
                    bytes = &bytes[body.consume(bytes).map_err(invalid)?..];
                    if !body.has_ended() {
                        return Ok(());
                    }
                    let OriginState::Body(_, answer) =
                        std::mem::replace(&mut self.state, OriginState::Head)
                    else {
                        unreachable!("it was one a moment ago")
                    };
                    self.answer(answer, replies)?;
                }
                OriginState::Head if bytes.is_empty() || self.closes => return Ok(()),
                OriginState::Head => match parse(bytes, replies)? {
                    Some(request) => {
                        bytes = &bytes[request.length..];
                        self.closes = request.closes;
                        self.state = OriginState::Body(request.body, request.answer);
                    }
                    None if bytes.len() > HEAD => return Err(invalid("the head is too long")),
                    None => {
                        self.partial.extend_from_slice(bytes);
                        return Ok(());
                    }
                },
            }
        }
    }

    fn answer(&mut self, answer: Answer, replies: &Replies) -> io::Result<()> {
        self.state = OriginState::Answer(answer, 0);
        self.write(replies)
    }

    fn write(&mut self, replies: &Replies) -> io::Result<()> {
        let OriginState::Answer(answer, sent) = &mut self.state else {
            return Ok(());
        };
        let bytes = answer.bytes(replies);
        match self.socket.write(&bytes[*sent..]) {
            Err(error) if would_block(&error) => {}
            written => *sent += written?,
        }
        if *sent == bytes.len() {
            self.state = OriginState::Head;
        }
        Ok(())
    }
}

/// A request with a complete head.
struct Request {
    /// Length of the head in bytes.
    length: usize,
    body: Body,
    answer: Answer,
    /// True if the connection closes after the answer.
    closes: bool,
}

fn parse(bytes: &[u8], replies: &Replies) -> io::Result<Option<Request>> {
    let mut fields = [httparse::EMPTY_HEADER; FIELDS];
    let mut request = httparse::Request::new(&mut fields);
    let length = match request.parse(bytes).map_err(invalid)? {
        httparse::Status::Partial => return Ok(None),
        httparse::Status::Complete(length) => length,
    };
    let framing = Framing::of_fields(request.headers).map_err(invalid)?;
    let path = request.path.unwrap_or_default();
    let answer = if path.ends_with("/echo") {
        Answer::Echo(Replies::echo(&bytes[..length]))
    } else {
        Answer::Rendered(replies.choose(path))
    };
    let closes = request.headers.iter().any(|field| {
        field.name.eq_ignore_ascii_case("connection") && field.value.eq_ignore_ascii_case(b"close")
    });
    Ok(Some(Request {
        length,
        body: Body::new(framing.unwrap_or(Framing::Length(0))),
        answer,
        closes,
    }))
}

fn invalid(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error)
}
