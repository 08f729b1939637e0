//! The loop under the origin, the relay and the generator: level-triggered epoll on one thread.
//!
//! It has no runtime, so that their cost beside a proxy is small and equal in every measurement.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use rustix::buffer::spare_capacity;
use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};

/// Maximum number of events per wait.
const EVENTS: usize = 256;

/// An event of the source that was registered under this token.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ready {
    pub(crate) token: usize,
    /// Input is available, including an end or an error.
    pub(crate) readable: bool,
    pub(crate) writable: bool,
}

/// Events that a source is watched for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Interest {
    Read,
    Write,
    Both,
    /// Errors only.
    Neither,
}

impl Interest {
    pub(crate) fn of(read: bool, write: bool) -> Self {
        match (read, write) {
            (true, true) => Self::Both,
            (true, false) => Self::Read,
            (false, true) => Self::Write,
            (false, false) => Self::Neither,
        }
    }

    fn flags(self) -> EventFlags {
        match self {
            Self::Read => EventFlags::IN,
            Self::Write => EventFlags::OUT,
            Self::Both => EventFlags::IN | EventFlags::OUT,
            Self::Neither => EventFlags::empty(),
        }
    }
}

pub(crate) struct Poll {
    epoll: OwnedFd,
    events: Vec<Event>,
}

impl Poll {
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self {
            epoll: epoll::create(CreateFlags::CLOEXEC)?,
            events: Vec::with_capacity(EVENTS),
        })
    }

    /// Registers a source. The kernel removes it when it is closed.
    pub(crate) fn add(
        &self,
        source: impl AsFd,
        token: usize,
        interest: Interest,
    ) -> io::Result<()> {
        Ok(epoll::add(
            &self.epoll,
            source,
            data(token),
            interest.flags(),
        )?)
    }

    pub(crate) fn modify(
        &self,
        source: impl AsFd,
        token: usize,
        interest: Interest,
    ) -> io::Result<()> {
        Ok(epoll::modify(
            &self.epoll,
            source,
            data(token),
            interest.flags(),
        )?)
    }

    /// Waits for events for at most `timeout` and puts them into `ready`. Without a timeout it
    /// waits for the first event.
    pub(crate) fn wait(
        &mut self,
        timeout: Option<Duration>,
        ready: &mut Vec<Ready>,
    ) -> io::Result<()> {
        ready.clear();
        let timeout = timeout.map(|timeout| Timespec {
            tv_sec: i64::try_from(timeout.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: timeout.subsec_nanos().into(),
        });
        self.events.clear();
        match epoll::wait(
            &self.epoll,
            spare_capacity(&mut self.events),
            timeout.as_ref(),
        ) {
            Ok(_) => {}
            Err(rustix::io::Errno::INTR) => return Ok(()),
            Err(error) => return Err(error.into()),
        }
        ready.extend(self.events.iter().map(|event| {
            let (flags, data) = (event.flags, event.data);
            let broken = flags.intersects(EventFlags::ERR | EventFlags::HUP);
            Ready {
                token: usize::try_from(data.u64()).expect("it was a token"),
                readable: broken || flags.contains(EventFlags::IN),
                writable: broken || flags.contains(EventFlags::OUT),
            }
        }));
        Ok(())
    }
}

fn data(token: usize) -> EventData {
    EventData::new_u64(token as u64)
}

/// Values by token. A token is used again after its value was removed.
#[derive(Debug)]
pub(crate) struct Slots<T> {
    slots: Vec<Option<T>>,
    free: Vec<usize>,
}

impl<T> Slots<T> {
    pub(crate) fn new() -> Self {
        Self {
            slots: Vec::new(),
            free: Vec::new(),
        }
    }

    /// The token of the next insertion.
    pub(crate) fn next(&self) -> usize {
        self.free.last().copied().unwrap_or(self.slots.len())
    }

    pub(crate) fn insert(&mut self, value: T) -> usize {
        if let Some(token) = self.free.pop() {
            self.slots[token] = Some(value);
            return token;
        }
        self.slots.push(Some(value));
        self.slots.len() - 1
    }

    pub(crate) fn get_mut(&mut self, token: usize) -> Option<&mut T> {
        self.slots.get_mut(token)?.as_mut()
    }

    pub(crate) fn remove(&mut self, token: usize) -> Option<T> {
        let removed = self.slots.get_mut(token)?.take()?;
        self.free.push(token);
        Some(removed)
    }
}

/// Returns true if the attempt should be repeated after the next event.
pub(crate) fn would_block(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
    )
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn a_token_comes_back_with_what_happened_to_its_source() {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let mut near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (far, _) = listener.accept().unwrap();
        let mut poll = Poll::new().unwrap();
        let mut ready = Vec::new();
        poll.add(&far, 7, Interest::Read).unwrap();
        poll.wait(Some(Duration::ZERO), &mut ready).unwrap();
        assert!(ready.is_empty());
        near.write_all(b"x").unwrap();
        poll.wait(None, &mut ready).unwrap();
        assert!(matches!(
            ready[..],
            [Ready {
                token: 7,
                readable: true,
                writable: false
            }]
        ));
        poll.modify(&far, 9, Interest::Both).unwrap();
        poll.wait(None, &mut ready).unwrap();
        assert!(matches!(
            ready[..],
            [Ready {
                token: 9,
                readable: true,
                writable: true
            }]
        ));
    }

    #[test]
    fn a_slot_is_used_again_after_it_was_emptied() {
        let mut slots = Slots::new();
        assert_eq!(
            (slots.insert('a'), slots.insert('b'), slots.next()),
            (0, 1, 2)
        );
        assert_eq!(slots.remove(0), Some('a'));
        assert_eq!(slots.remove(0), None);
        assert_eq!(slots.next(), 0);
        assert_eq!(slots.insert('c'), 0);
        assert_eq!(slots.get_mut(1), Some(&mut 'b'));
    }
}
