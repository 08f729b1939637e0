//! A connection of the generator: one request at a time, in cleartext or over TLS.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::ServerName;
use rustls::{ClientConnection, StreamOwned};

use super::response::Response;
use super::{HOST, Target};
use crate::poll::{Interest, would_block};

/// The result of an operation on a connection.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum LoadOutcome {
    /// Idle, or waiting for the response.
    Waiting,
    Complete,
    /// The response was complete, and the proxy has closed.
    Closed,
    Failed(String),
}

pub(super) struct LoadConnection {
    stream: Stream,
    response: Response,
    /// Number of sent bytes of the request.
    sent: usize,
    state: LoadState,
    interest: Interest,
    /// The time from which the latency counts, since the start of the run.
    pub(super) since: Duration,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LoadState {
    Idle,
    Sending,
    Receiving,
}

enum Stream {
    Plain(TcpStream),
    Tls(Box<StreamOwned<ClientConnection, TcpStream>>),
}

impl LoadConnection {
    /// Connects, which is immediate over loopback. The TLS handshake is part of the first request.
    pub(super) fn open(target: &Target, expected: u64) -> io::Result<Self> {
        let socket = TcpStream::connect(target.address)?;
        socket.set_nodelay(true)?;
        socket.set_nonblocking(true)?;
        let stream = match &target.tls {
            None => Stream::Plain(socket),
            Some(config) => {
                let name = ServerName::try_from(HOST).expect("the name is valid");
                let client =
                    ClientConnection::new(Arc::clone(config), name).map_err(io::Error::other)?;
                Stream::Tls(Box::new(StreamOwned::new(client, socket)))
            }
        };
        Ok(Self {
            stream,
            response: Response::new(expected),
            sent: 0,
            state: LoadState::Idle,
            interest: Interest::Read,
            since: Duration::ZERO,
        })
    }

    pub(super) fn is_busy(&self) -> bool {
        self.state != LoadState::Idle
    }

    /// Starts an exchange.
    pub(super) fn start(&mut self, request: &[u8], since: Duration) -> LoadOutcome {
        self.response.reset();
        self.sent = 0;
        self.since = since;
        self.state = LoadState::Sending;
        match self.send(request) {
            Ok(()) => LoadOutcome::Waiting,
            Err(error) => LoadOutcome::Failed(format!("writing: {error}")),
        }
    }

    /// Continues after the socket has become ready.
    pub(super) fn go_on(
        &mut self,
        request: &[u8],
        readable: bool,
        buffer: &mut [u8],
    ) -> LoadOutcome {
        if self.state == LoadState::Sending
            && let Err(error) = self.send(request)
        {
            return LoadOutcome::Failed(format!("writing: {error}"));
        }
        if !readable {
            return LoadOutcome::Waiting;
        }
        loop {
            let read = match self.stream.read(buffer) {
                Ok(read) => read,
                Err(error) if would_block(&error) => {
                    // The handshake has just ended, so the request can be sent.
                    return match self.send(request) {
                        Ok(()) => LoadOutcome::Waiting,
                        Err(error) => LoadOutcome::Failed(format!("writing: {error}")),
                    };
                }
                Err(_) if self.state == LoadState::Idle => return LoadOutcome::Closed,
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => 0,
                Err(error) => return LoadOutcome::Failed(format!("reading: {error}")),
            };
            let consumed = match (self.state, read) {
                (LoadState::Idle, 0) => return LoadOutcome::Closed,
                (LoadState::Idle, _) => Err("bytes that nobody asked for".to_owned()),
                (_, 0) => self.response.end(),
                (_, read) => self.response.consume(&buffer[..read]),
            };
            match consumed {
                Ok(false) if self.stream.may_hold_more() => {}
                Ok(false) => return LoadOutcome::Waiting,
                Ok(true) if self.state == LoadState::Sending => {
                    return LoadOutcome::Failed(
                        "an answer before the request was complete".to_owned(),
                    );
                }
                Ok(true) => {
                    self.state = LoadState::Idle;
                    return LoadOutcome::Complete;
                }
                Err(why) => return LoadOutcome::Failed(why),
            }
        }
    }

    fn send(&mut self, request: &[u8]) -> io::Result<()> {
        while self.state == LoadState::Sending {
            match self.stream.write(&request[self.sent..]) {
                Err(error) if would_block(&error) => break,
                written => self.sent += written?,
            }
            if self.sent == request.len() {
                self.state = LoadState::Receiving;
            }
        }
        self.stream.flush()
    }

    /// The new events to watch the socket for, if they have changed.
    pub(super) fn changed_interest(&mut self) -> Option<Interest> {
        let write = match &self.stream {
            Stream::Plain(_) => self.state == LoadState::Sending,
            Stream::Tls(stream) => {
                stream.conn.wants_write()
                    || (self.state == LoadState::Sending && !stream.conn.is_handshaking())
            }
        };
        let wanted = Interest::of(true, write);
        (wanted != self.interest).then(|| {
            self.interest = wanted;
            wanted
        })
    }
}

impl AsFd for LoadConnection {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match &self.stream {
            Stream::Plain(socket) => socket.as_fd(),
            Stream::Tls(stream) => stream.sock.as_fd(),
        }
    }
}

impl Stream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Plain(socket) => socket.read(buffer),
            Self::Tls(stream) => stream.read(buffer),
        }
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Plain(socket) => socket.write(bytes),
            Self::Tls(stream) => stream.write(bytes),
        }
    }

    /// Sends buffered TLS data, as far as the socket accepts it.
    fn flush(&mut self) -> io::Result<()> {
        let Self::Tls(stream) = self else {
            return Ok(());
        };
        while stream.conn.wants_write() {
            match stream.conn.write_tls(&mut stream.sock) {
                Err(error) if would_block(&error) => return Ok(()),
                written => written?,
            };
        }
        Ok(())
    }

    /// Returns true if data may be buffered above the socket.
    fn may_hold_more(&self) -> bool {
        matches!(self, Self::Tls(_))
    }
}
