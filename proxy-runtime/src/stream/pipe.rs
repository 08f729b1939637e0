//! Pipes through which the system moves bytes from socket to socket (splice(2)).

use std::cell::{Cell, RefCell};
use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::io::Errno;
use rustix::pipe::{PipeFlags, SpliceFlags, fcntl_setpipe_size, pipe_with, splice};

/// Bytes that a pipe is asked to hold, as large buffers do. Where the system gives no more than its default (64 KiB), that does.
const SIZE: usize = 256 * 1024;

/// Pipes that a thread has at a time, of two descriptors each. Who gets none copies.
const MOST: usize = 16;

thread_local! {
    /// Empty ones.
    static SPARE: RefCell<Vec<Pipe>> = const { RefCell::new(Vec::new()) };
    static OPEN: Cell<usize> = const { Cell::new(0) };
}

/// A pipe, and how much is in it.
#[derive(Debug)]
pub(crate) struct Pipe {
    reader: OwnedFd,
    writer: OwnedFd,
    held: usize,
}

impl Pipe {
    /// An empty one; `None` if the thread has as many as it may, or the system gives none.
    pub(crate) fn take() -> Option<Self> {
        if let Ok(Some(spare)) = SPARE.try_with(|spare| spare.borrow_mut().pop()) {
            return Some(spare);
        }
        if OPEN.try_with(Cell::get).ok()? >= MOST {
            return None;
        }
        let (reader, writer) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK).ok()?;
        let _ = fcntl_setpipe_size(&writer, SIZE);
        OPEN.with(|open| open.set(open.get() + 1));
        Some(Self {
            reader,
            writer,
            held: 0,
        })
    }

    /// Keeps it for the next transfer, unless something is in it, which would belong to nobody then.
    pub(crate) fn give_back(self) {
        if self.is_empty() {
            let _ = SPARE.try_with(|spare| spare.borrow_mut().push(self));
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
        let _ = OPEN.try_with(|open| open.set(open.get().saturating_sub(1)));
    }
}

fn pass(from: impl AsFd, to: impl AsFd, most: usize) -> io::Result<usize> {
    let flags = SpliceFlags::MOVE | SpliceFlags::NONBLOCK;
    splice(from, None, to, None, most, flags).map_err(|error| match error {
        // The system has no such call, or not for these: sockets are replaced by others below some sandboxes.
        Errno::INVAL | Errno::NOSYS => io::ErrorKind::Unsupported.into(),
        error => error.into(),
    })
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
        assert_eq!((spare(), OPEN.get()), (0, 1));
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
        assert_eq!((spare(), OPEN.get()), (0, 0));
    }

    #[test]
    fn a_thread_has_so_many_and_no_more() {
        let mut pipes: Vec<_> = (0..MOST).map(|_| Pipe::take().unwrap()).collect();
        assert!(Pipe::take().is_none());
        pipes.pop();
        assert!(Pipe::take().is_some());
    }
}
