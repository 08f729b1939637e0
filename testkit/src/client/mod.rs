//! HTTP clients that hide nothing: one connection each, no pool, no retry, no redirect.
//!
//! A [`Connection`] speaks HTTP/1.1, HTTP/2 by prior knowledge, or what ALPN agrees on. [`Load`] keeps several busy and
//! counts every request that failed.
//!
//! ```
//! use testkit::client::Connection;
//! use testkit::origin::Origin;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), testkit::client::ClientError> {
//! let origin = Origin::echo();
//! let mut client = Connection::http2(origin.addr()).await?;
//! let answer = client.get("/apples?ripe=yes").await?;
//! assert_eq!(answer.status, 200);
//! assert_eq!(answer.json::<testkit::origin::Echo>().path_and_query(), "/apples?ripe=yes");
//! # Ok(())
//! # }
//! ```

mod answer;
mod connection;
mod error;
mod load;
mod report;
mod websocket;

#[cfg(test)]
mod tests;

pub use self::answer::{Answer, Interim};
pub use self::connection::{Connection, Protocol};
pub use self::error::ClientError;
pub use self::load::{Load, RunningLoad};
pub use self::report::LoadReport;
pub use self::websocket::{Message, WebSocket, websocket};
