//! Both ends of a connection, byte by byte.
//!
//! A [`RawOrigin`] runs a script for each connection that it accepts; a [`RawClient`] sends any
//! bytes and parses responses strictly. Neither hides anything that hyper would repair, reject or
//! merge.
//!
//! ```
//! use testkit::raw::{RawClient, RawOrigin};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> std::io::Result<()> {
//! let origin = RawOrigin::script(|mut connection| async move {
//!     let request = connection.read_request().await?;
//!     assert_eq!(request.method, "GET");
//!     connection.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nnot a hundred").await?;
//!     connection.reset();
//!     Ok(())
//! });
//!
//! let mut client = RawClient::connect(origin.addr()).await?;
//! client.write_all(b"GET / HTTP/1.1\r\nHost: a.example\r\n\r\n").await?;
//! let head = client.read_response_head().await?;
//! assert_eq!(head.status, 200);
//! let error = client.read_exact(100).await.unwrap_err();
//! assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);
//! assert_eq!(origin.recording(0).text(), "GET / HTTP/1.1\r\nHost: a.example\r\n\r\n");
//! # Ok(())
//! # }
//! ```

mod chunked;
mod client;
mod connection;
pub mod frame;
mod generate;
mod origin;
mod recording;
mod request;
mod response;
mod stream;

#[cfg(test)]
mod tests;

pub use self::client::RawClient;
pub use self::connection::RawConnection;
pub use self::generate::{chunk, head_of_bytes, head_with_fields};
pub use self::origin::RawOrigin;
pub use self::recording::{RECORDED_BYTES, Recording};
pub use self::request::RequestHead;
pub use self::response::{Framing, RawResponse, ResponseHead};
pub use self::stream::{Closed, RawStream};
