//! The server behind every proxy: prepared answers, several ports, one thread.

mod connection;
mod http2;
mod reply;
#[cfg(test)]
mod tests;

use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use self::connection::OriginConnection;
use self::reply::Replies;
use crate::poll::{Interest, Poll, Ready, Slots, would_block};
use crate::system;

pub(crate) use self::reply::Resource;

/// Number of ports: the destinations that proxies balance over.
pub(crate) const PORTS: usize = 4;

/// First token of the listeners.
const LISTENERS: usize = usize::MAX >> 1;

/// Interval between checks of the stop flag.
const LOOK: Duration = Duration::from_millis(100);

const BUFFER: usize = 256 << 10;

/// A running origin. It stops when this is dropped.
pub(crate) struct Origin {
    addresses: Vec<SocketAddr>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Origin {
    /// Starts a thread that serves [`PORTS`] loopback ports, pinned to `cores` if given.
    pub(crate) fn start(cores: Option<Vec<usize>>) -> io::Result<Self> {
        Self::serve(cores, |listeners, stop| Server::new(listeners)?.run(stop))
    }

    /// Starts a thread that serves them over HTTP/2 with prior knowledge.
    pub(crate) fn start_http2() -> io::Result<Self> {
        Self::serve(None, http2::serve)
    }

    fn serve(
        cores: Option<Vec<usize>>,
        serve: impl FnOnce(Vec<TcpListener>, &AtomicBool) -> io::Result<()> + Send + 'static,
    ) -> io::Result<Self> {
        let mut listeners = Vec::new();
        for _ in 0..PORTS {
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
            listener.set_nonblocking(true)?;
            listeners.push(listener);
        }
        let addresses = listeners
            .iter()
            .map(TcpListener::local_addr)
            .collect::<io::Result<_>>()?;
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = std::thread::Builder::new()
            .name("origin".to_owned())
            .spawn(move || {
                if let Some(cores) = cores
                    && let Err(error) = system::pin(&cores)
                {
                    eprintln!("the origin cannot be pinned: {error}");
                }
                if let Err(error) = serve(listeners, &stopped) {
                    // Later measurements fail with errors of their own; this line names the cause.
                    eprintln!("the origin has ended: {error}");
                }
            })?;
        Ok(Self {
            addresses,
            stop,
            thread: Some(thread),
        })
    }

    pub(crate) fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }
}

impl Drop for Origin {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // The thread has already printed its panic.
            let _ = thread.join();
        }
    }
}

struct Server {
    poll: Poll,
    listeners: Vec<TcpListener>,
    connections: Slots<OriginConnection>,
    replies: Replies,
    buffer: Vec<u8>,
}

impl Server {
    fn new(listeners: Vec<TcpListener>) -> io::Result<Self> {
        let poll = Poll::new()?;
        for (number, listener) in listeners.iter().enumerate() {
            poll.add(listener, LISTENERS + number, Interest::Read)?;
        }
        Ok(Self {
            poll,
            listeners,
            connections: Slots::new(),
            replies: Replies::new(),
            buffer: vec![0; BUFFER],
        })
    }

    fn run(&mut self, stop: &AtomicBool) -> io::Result<()> {
        let mut ready = Vec::new();
        while !stop.load(Ordering::Relaxed) {
            self.poll.wait(Some(LOOK), &mut ready)?;
            for event in &ready {
                match event.token.checked_sub(LISTENERS) {
                    Some(listener) => self.accept(listener)?,
                    None => self.serve(event),
                }
            }
        }
        Ok(())
    }

    fn accept(&mut self, listener: usize) -> io::Result<()> {
        loop {
            let (socket, _) = match self.listeners[listener].accept() {
                Err(error) if would_block(&error) => return Ok(()),
                // The proxy closed the connection before it was accepted.
                Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => continue,
                accepted => accepted?,
            };
            socket.set_nonblocking(true)?;
            socket.set_nodelay(true)?;
            let token = self.connections.next();
            self.poll.add(&socket, token, Interest::Read)?;
            self.connections.insert(OriginConnection::new(socket));
        }
    }

    fn serve(&mut self, event: &Ready) {
        let Some(connection) = self.connections.get_mut(event.token) else {
            return;
        };
        let served = connection.serve(event, &self.replies, &mut self.buffer);
        let watched = served.and_then(|goes_on| {
            if let Some(interest) = connection.changed_interest() {
                self.poll
                    .modify(connection.socket(), event.token, interest)?;
            }
            Ok(goes_on)
        });
        // End or error: the proxy notices either.
        if !matches!(watched, Ok(true)) {
            self.connections.remove(event.token);
        }
    }
}
