//! The floor of the comparison: copies bytes from client to origin and back without parsing.
//!
//! For each request that fits a buffer it makes one wait, two reads and two writes, the least that
//! a program with sockets and HTTP can do.

mod transit;

use std::io;
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::rc::Rc;
use std::time::Duration;

use self::transit::Transit;

use crate::poll::{Interest, Poll, Ready, Slots, would_block};

pub(crate) use self::transit::By;

/// Number of bytes per read. More gains nothing over loopback.
const BUFFER: usize = 256 << 10;

const LISTENER: usize = usize::MAX >> 1;

/// Serves `port` until the process ends. Each client connection gets an origin connection, in turn.
pub(crate) fn run(port: u16, origins: &[SocketAddr], by: By) -> io::Result<()> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))?;
    serve(&listener, origins, by, || false)
}

/// Serves like [`run`] until `stop` returns true. It is called at least ten times per second.
fn serve(
    listener: &TcpListener,
    origins: &[SocketAddr],
    by: By,
    stop: impl Fn() -> bool,
) -> io::Result<()> {
    listener.set_nonblocking(true)?;
    let mut relay = Relay {
        poll: Poll::new()?,
        ends: Slots::new(),
        buffer: vec![0; BUFFER],
    };
    relay.poll.add(listener, LISTENER, Interest::Read)?;
    let mut ready = Vec::new();
    let mut turn = 0;
    while !stop() {
        relay
            .poll
            .wait(Some(Duration::from_millis(100)), &mut ready)?;
        for event in &ready {
            if event.token == LISTENER {
                while let Ok((client, _)) = listener.accept() {
                    let origin = origins[turn % origins.len()];
                    turn += 1;
                    // A client without an origin is closed; the generator counts an error.
                    let _ = relay.pair(client, origin, by);
                }
            } else {
                relay.serve(event);
            }
        }
    }
    Ok(())
}

/// One of the two sockets of a relayed connection.
struct End {
    socket: Rc<TcpStream>,
    /// The other socket, and its token.
    from: Rc<TcpStream>,
    other: usize,
    /// The path from the other socket to this one. While it holds bytes, the other socket is not
    /// read.
    transit: Transit,
    /// True after the end of input on this socket.
    ended: bool,
    interest: Interest,
}

struct Relay {
    poll: Poll,
    ends: Slots<End>,
    buffer: Vec<u8>,
}

impl Relay {
    fn pair(&mut self, client: TcpStream, origin: SocketAddr, by: By) -> io::Result<()> {
        // A blocking connect: over loopback it is too short for a state.
        let origin = TcpStream::connect(origin)?;
        for socket in [&client, &origin] {
            socket.set_nonblocking(true)?;
            socket.set_nodelay(true)?;
        }
        let (client, origin) = (Rc::new(client), Rc::new(origin));
        let ends = [
            End::new(&client, &origin, by)?,
            End::new(&origin, &client, by)?,
        ];
        let [first, second] = ends.map(|end| self.ends.insert(end));
        for (token, other) in [(first, second), (second, first)] {
            let end = self.ends.get_mut(token).expect("it was just inserted");
            end.other = other;
            self.poll.add(&*end.socket, token, Interest::Read)?;
        }
        Ok(())
    }

    fn serve(&mut self, event: &Ready) {
        let outcome = if event.writable {
            self.flush(event.token)
        } else {
            Ok(())
        };
        let outcome = outcome.and_then(|()| {
            if event.readable {
                self.forward(event.token)
            } else {
                Ok(())
            }
        });
        if outcome.is_err() {
            self.close(event.token);
        }
    }

    /// Reads once from this socket and writes to the other.
    fn forward(&mut self, token: usize) -> io::Result<()> {
        let Some(end) = self.ends.get_mut(token) else {
            return Ok(());
        };
        if end.interest == Interest::Write || end.interest == Interest::Neither {
            return Ok(());
        }
        let other = end.other;
        let Some(to) = self.ends.get_mut(other) else {
            return Err(io::ErrorKind::NotConnected.into());
        };
        let read = match to.transit.pass(&to.from, &to.socket, &mut self.buffer) {
            Err(error) if would_block(&error) => return Ok(()),
            read => read?,
        };
        if read == 0 {
            if to.ended && to.transit.is_empty() {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            to.socket.shutdown(Shutdown::Write)?;
            if let Some(end) = self.ends.get_mut(token) {
                end.ended = true;
            }
        }
        self.watch(token)?;
        self.watch(other)
    }

    /// Writes pending bytes to this socket.
    fn flush(&mut self, token: usize) -> io::Result<()> {
        let Some(end) = self.ends.get_mut(token) else {
            return Ok(());
        };
        end.transit.flush(&end.socket)?;
        let other = end.other;
        self.watch(token)?;
        self.watch(other)
    }

    /// Updates the watched events of a socket. Calls the kernel only after a change.
    fn watch(&mut self, token: usize) -> io::Result<()> {
        let Some(end) = self.ends.get_mut(token) else {
            return Ok(());
        };
        let (other, ended, write) = (end.other, end.ended, !end.transit.is_empty());
        let blocked = self
            .ends
            .get_mut(other)
            .is_none_or(|other| !other.transit.is_empty());
        let wanted = Interest::of(!ended && !blocked, write);
        let end = self.ends.get_mut(token).expect("it was there a moment ago");
        if end.interest != wanted {
            end.interest = wanted;
            self.poll.modify(&*end.socket, token, wanted)?;
        }
        Ok(())
    }

    fn close(&mut self, token: usize) {
        if let Some(end) = self.ends.remove(token) {
            self.ends.remove(end.other);
        }
    }
}

impl End {
    fn new(socket: &Rc<TcpStream>, from: &Rc<TcpStream>, by: By) -> io::Result<Self> {
        Ok(Self {
            socket: Rc::clone(socket),
            from: Rc::clone(from),
            other: usize::MAX,
            transit: Transit::new(by)?,
            ended: false,
            interest: Interest::Read,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::thread;

    use super::*;

    #[test]
    fn every_byte_arrives_in_both_directions_and_so_does_the_end() {
        for by in [By::Copy, By::Splice] {
            relays_everything(by);
        }
    }

    fn relays_everything(by: By) {
        let origin = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let (to, at) = (origin.local_addr().unwrap(), listener.local_addr().unwrap());
        let stop = AtomicBool::new(false);
        // More than a socket buffer holds, so that writes are partial.
        let sent: Vec<u8> = (0..8_u32 << 20)
            .map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8)
            .collect();
        thread::scope(|scope| {
            scope.spawn(|| serve(&listener, &[to], by, || stop.load(Ordering::Relaxed)).unwrap());
            scope.spawn(|| {
                let (mut socket, _) = origin.accept().unwrap();
                let mut all = Vec::new();
                socket.read_to_end(&mut all).unwrap();
                socket.write_all(&all).unwrap();
            });
            let mut client = TcpStream::connect(at).unwrap();
            client.write_all(&sent).unwrap();
            client.shutdown(Shutdown::Write).unwrap();
            let mut echoed = Vec::new();
            client.read_to_end(&mut echoed).unwrap();
            assert!(
                echoed == sent,
                "{by:?}: {} of {} bytes",
                echoed.len(),
                sent.len()
            );
            stop.store(true, Ordering::Relaxed);
        });
    }
}
