//! Bytes between sockets and what gives them a meaning: read into buffers that idle connections do not hold, and written
//! whole.

mod read_buffer;
pub(crate) mod spare;
mod write;

pub(crate) use self::read_buffer::ReadBuffer;
pub(crate) use self::write::poll_write_all;
#[cfg(feature = "server")]
pub(crate) use self::write::write_all;
