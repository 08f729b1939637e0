//! Byte transport between sockets and parsers: reads into buffers that idle connections do not
//! hold, and complete writes.

mod byte_stream;
#[cfg(all(feature = "http2", feature = "server"))]
mod http2_ends;
#[cfg(all(target_os = "linux", feature = "server"))]
mod late_socket;
mod read_buffer;
pub(crate) mod recycled;
#[cfg(target_os = "linux")]
mod socket;
#[cfg(feature = "server")]
mod upgrade;
mod write;

pub(crate) use self::byte_stream::ByteStream;
#[cfg(all(feature = "http2", feature = "server"))]
pub(crate) use self::http2_ends::Http2Ends;
#[cfg(all(target_os = "linux", feature = "server"))]
pub(crate) use self::late_socket::LateSocket;
pub(crate) use self::read_buffer::ReadBuffer;
#[cfg(feature = "server")]
pub(crate) use self::upgrade::Switch;
#[cfg(feature = "server")]
pub use self::upgrade::{OnUpgrade, Upgraded};
pub(crate) use self::write::poll_write_all;
#[cfg(feature = "server")]
pub(crate) use self::write::write_all;
