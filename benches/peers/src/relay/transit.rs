//! Bytes in transit between two sockets: copied, or spliced through a pipe.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::fd::OwnedFd;

use rustix::pipe::{PipeFlags, SpliceFlags, fcntl_setpipe_size, pipe_with, splice};

use super::BUFFER;
use crate::poll::would_block;

/// Method of relaying.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum By {
    /// Through a buffer in the program.
    Copy,
    /// Through a pipe: the bytes never enter the program.
    Splice,
}

/// The path to a socket, with the bytes not yet written to it.
pub(super) enum Transit {
    Copy {
        unsent: Vec<u8>,
        sent: usize,
    },
    Pipe {
        reader: OwnedFd,
        writer: OwnedFd,
        held: usize,
    },
}

impl Transit {
    pub(super) fn new(by: By) -> io::Result<Self> {
        Ok(match by {
            By::Copy => Self::Copy {
                unsent: Vec::new(),
                sent: 0,
            },
            By::Splice => {
                let (reader, writer) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
                // As much as one read. If the system allows no more than its default, the default
                // works too.
                let _ = fcntl_setpipe_size(&writer, BUFFER);
                Self::Pipe {
                    reader,
                    writer,
                    held: 0,
                }
            }
        })
    }

    pub(super) fn is_empty(&self) -> bool {
        match self {
            Self::Copy { unsent, .. } => unsent.is_empty(),
            Self::Pipe { held, .. } => *held == 0,
        }
    }

    /// Reads once from one socket and writes once to the other. Returns the number of bytes read, 0
    /// at the end.
    pub(super) fn pass(
        &mut self,
        mut from: &TcpStream,
        mut to: &TcpStream,
        buffer: &mut [u8],
    ) -> io::Result<usize> {
        match self {
            Self::Copy { unsent, .. } => {
                let read = from.read(buffer)?;
                if read > 0 {
                    let written = none_if_blocked(to.write(&buffer[..read]))?;
                    unsent.extend_from_slice(&buffer[written..read]);
                }
                Ok(read)
            }
            Self::Pipe { writer, held, .. } => {
                let read = move_bytes(from, &*writer, BUFFER)?;
                *held += read;
                if read > 0 {
                    self.push(to)?;
                }
                Ok(read)
            }
        }
    }

    /// Writes pending bytes as far as the socket accepts them.
    pub(super) fn flush(&mut self, to: &TcpStream) -> io::Result<()> {
        while !self.is_empty() && self.push(to)? > 0 {}
        Ok(())
    }

    /// Writes once.
    fn push(&mut self, mut to: &TcpStream) -> io::Result<usize> {
        match self {
            Self::Copy { unsent, sent } => {
                let written = none_if_blocked(to.write(&unsent[*sent..]))?;
                *sent += written;
                if *sent == unsent.len() {
                    unsent.clear();
                    *sent = 0;
                }
                Ok(written)
            }
            Self::Pipe { reader, held, .. } => {
                let written = none_if_blocked(move_bytes(&*reader, to, *held))?;
                *held -= written;
                Ok(written)
            }
        }
    }
}

fn move_bytes(
    from: impl rustix::fd::AsFd,
    to: impl rustix::fd::AsFd,
    most: usize,
) -> io::Result<usize> {
    let flags = SpliceFlags::MOVE | SpliceFlags::NONBLOCK;
    Ok(splice(from, None, to, None, most, flags)?)
}

fn none_if_blocked(written: io::Result<usize>) -> io::Result<usize> {
    match written {
        Err(error) if would_block(&error) => Ok(0),
        written => written,
    }
}
