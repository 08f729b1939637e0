//! Bytes between sockets and what gives them a meaning: read into buffers that idle connections do not hold, and written
//! whole.

mod byte_stream;
#[cfg(feature = "server")]
#[cfg_attr(not(target_os = "linux"), path = "no_pipe.rs")]
mod pipe;
mod read_buffer;
#[cfg(target_os = "linux")]
mod socket;
pub(crate) mod spare;
mod write;

pub(crate) use self::byte_stream::ByteStream;
#[cfg(feature = "server")]
pub(crate) use self::pipe::Pipe;
#[cfg(all(test, feature = "server", target_os = "linux"))]
pub(crate) use self::pipe::{deny as deny_pipes, spare as spare_pipes};
pub(crate) use self::read_buffer::ReadBuffer;
pub(crate) use self::write::poll_write_all;
#[cfg(feature = "server")]
pub(crate) use self::write::write_all;
