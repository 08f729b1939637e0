//! Pipes through which the system moves bytes from socket to socket (splice(2)).

use std::cell::RefCell;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use rustix::io::Errno;
use rustix::pipe::{PipeFlags, SpliceFlags, fcntl_setpipe_size, pipe_with, splice};
use rustix::process::{Resource, getrlimit};

/// Bytes that a pipe holds, as large buffers do. One that holds less costs more than to copy (docs/performance.md).
const SIZE: usize = 256 * 1024;

/// Pipes that a thread keeps for further transfers.
const MOST_SPARE: usize = 4;

/// Pipes that the process has at a time, of two descriptors each, if a fortieth of the descriptors that it may have is not
/// fewer. Linux gives a user without privileges 64 MiB for all, of which this is half.
const MOST: usize = 128;

static OPEN: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    /// Empty ones.
    static SPARE: RefCell<Vec<Pipe>> = const { RefCell::new(Vec::new()) };
}

fn most() -> usize {
    static AFFORDED: OnceLock<usize> = OnceLock::new();
    *AFFORDED.get_or_init(|| {
        let descriptors = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
        usize::try_from(descriptors / 40).map_or(MOST, |afforded| afforded.min(MOST))
    })
}

/// A pipe, and how much is in it.
#[derive(Debug)]
pub(crate) struct Pipe {
    reader: OwnedFd,
    writer: OwnedFd,
    held: usize,
}

impl Pipe {
    /// An empty one; `None` if the process has as many as it may, or the system gives none of that size. Then bytes are
    /// copied.
    pub(crate) fn take() -> Option<Self> {
        #[cfg(test)]
        if DENIED.get() {
            return None;
        }
        if let Ok(Some(spare)) = SPARE.try_with(|spare| spare.borrow_mut().pop()) {
            return Some(spare);
        }
        if OPEN.fetch_add(1, Relaxed) >= most() {
            OPEN.fetch_sub(1, Relaxed);
            return None;
        }
        let made =
            pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK).and_then(|(reader, writer)| {
                fcntl_setpipe_size(&writer, SIZE)?;
                Ok((reader, writer))
            });
        let Ok((reader, writer)) = made else {
            OPEN.fetch_sub(1, Relaxed);
            return None;
        };
        Some(Self {
            reader,
            writer,
            held: 0,
        })
    }

    /// Keeps it for the next transfer, unless something is in it, which would belong to nobody then.
    pub(crate) fn give_back(self) {
        if self.is_empty() {
            let _ = SPARE.try_with(|spare| {
                let mut spare = spare.borrow_mut();
                if spare.len() < MOST_SPARE {
                    spare.push(self);
                }
            });
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.held == 0
    }

    /// Moves what has come at a socket into the pipe, `most` bytes at most; 0 at the end of the stream.
    pub(super) fn fill(&mut self, from: impl AsFd, most: usize) -> io::Result<usize> {
        let moved = pass(from, &self.writer, most.min(SIZE))?;
        self.held += moved;
        Ok(moved)
    }

    /// Moves what is in the pipe to a socket, as much as that takes.
    pub(super) fn drain(&mut self, to: impl AsFd) -> io::Result<usize> {
        let moved = pass(&self.reader, to, self.held)?;
        self.held -= moved;
        Ok(moved)
    }
}

impl Drop for Pipe {
    fn drop(&mut self) {
        OPEN.fetch_sub(1, Relaxed);
    }
}

fn pass(from: impl AsFd, to: impl AsFd, most: usize) -> io::Result<usize> {
    let flags = SpliceFlags::MOVE | SpliceFlags::NONBLOCK;
    splice(from, None, to, None, most, flags).map_err(|error| match error {
        // The system has no such call, or not for these, or it is forbidden: so it is below some sandboxes.
        Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP | Errno::PERM | Errno::ACCESS => {
            io::ErrorKind::Unsupported.into()
        }
        error => error.into(),
    })
}

#[cfg(test)]
thread_local! {
    static DENIED: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
}

/// Has this thread get no pipes.
#[cfg(test)]
pub(crate) fn deny() {
    DENIED.set(true);
}

/// How many pipes this thread has that are not in use.
#[cfg(test)]
pub(crate) fn spare() -> usize {
    SPARE.with(|spare| spare.borrow().len())
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn what_goes_in_comes_out_and_the_pipe_serves_again() {
        let (mut source, from) = UnixStream::pair().unwrap();
        let (to, mut sink) = UnixStream::pair().unwrap();
        source.write_all(b"all of it").unwrap();
        let mut pipe = Pipe::take().unwrap();
        assert_eq!(pipe.fill(&from, 6).unwrap(), 6);
        assert_eq!(pipe.fill(&from, 100).unwrap(), 3);
        while !pipe.is_empty() {
            pipe.drain(&to).unwrap();
        }
        pipe.give_back();
        assert_eq!(spare(), 1);
        let mut read = [0; 9];
        sink.read_exact(&mut read).unwrap();
        assert_eq!(&read, b"all of it");

        let mut again = Pipe::take().unwrap();
        assert_eq!(spare(), 0);
        drop(source);
        assert_eq!(again.fill(&from, 1).unwrap(), 0, "the end");
    }

    #[test]
    fn what_was_not_read_goes_with_its_pipe() {
        let (mut source, from) = UnixStream::pair().unwrap();
        source.write_all(b"left").unwrap();
        let mut pipe = Pipe::take().unwrap();
        pipe.fill(&from, 4).unwrap();
        pipe.give_back();
        assert_eq!(spare(), 0);
    }

    #[test]
    fn a_thread_keeps_a_few() {
        let pipes: Vec<_> = (0..=MOST_SPARE).map_while(|_| Pipe::take()).collect();
        let count = pipes.len();
        pipes.into_iter().for_each(Pipe::give_back);
        assert_eq!(spare(), count.min(MOST_SPARE));
    }
}
