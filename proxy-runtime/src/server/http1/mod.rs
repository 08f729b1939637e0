//! The HTTP/1.1 server.
//!
//! One task per connection with one loop: it reads a head, serves or rejects the request, writes
//! the response, and continues with the next request. Pipelined requests are served in order. A
//! waiting connection holds no buffer, is polled only for events, and has one timer that is rarely
//! armed ([`Clock`]). A drain wakes it.
//!
//! # Two paths
//!
//! *The byte path*: if the service of the server is a
//! [`ProxyService`](crate::ProxyService), each valid request is first offered to
//! [`Http1Downstream::forward`] with the [`Client`]. [Its
//! module](crate::server::engine#what-leaves-this-way) lists the requests that it declines. The
//! contract between the two:
//!
//! - The head is at the front of `client.input` (`request.head_length()` bytes), and its fields are
//!   in `client.table`; the path needs no normalisation. The code that serves the request consumes
//!   head and body; the rest is the next request. To decline ([`Forwarded::Typed`]), it must leave
//!   everything unchanged.
//! - `client.output` is empty, and must be empty at the end. Its memory ([`Client::acquire_output`])
//!   and that of the table belong to the connection only until it is idle.
//! - [`Client::is_closing`] decides, right before the response head is written, whether it has
//!   `Connection: close`; then `keep` is `false`.
//! - While a request is relayed, or a local reply is written, the waiting code polls
//!   [`Clock::poll_slow_reader`] (ready: give up, [`Forwarded::Disconnected`]). After the end of the request
//!   a relay also polls [`Client::poll_gone`] with the same consequence. Before there is a connection
//!   to a destination, [`Client::unless_gone`] watches the client. The relay enforces the data rate
//!   of an upload (`Outbound::pace`). Other deadlines use [`Clock::poll_due`]. All polls happen in
//!   the connection's own task, since the timer has one waker.
//! - `client.record` is present and stays. `received` and `sent` count the bytes of bodies. If it
//!   has a draft of the access log record, [`RequestRecord::answered`] must be called. `outcome` is
//!   [`Aborted`] until the client has its whole response, and [`Failed`] if the response ends early
//!   for another reason than the client. If the connection is dropped at any moment, the record is
//!   logged as it is then.
//! - If a request body is not read to its end, `client.state.unread` is set and `keep` is `false`;
//!   the loop then lingers (lingering close).
//! - Only [`Clock::poll_slow_reader`] sets `client.state.abort`, by which the socket is reset
//!   instead of closed. No response of this path ends with the connection: one that does at the
//!   destination is sent in chunks, so that the client can detect a truncated body.
//!
//! *The `http` path*: all other requests become `http` requests for the service
//! ([`dispatch`]). The request body is read on demand ([`body_channel`]), and its data rate is
//! enforced by the `UploadPace` of that body. While the service or the client is waited for,
//! [`Dispatch`] polls [`Clock::poll_slow_reader`], then the body or [`Client::poll_gone`]. It sets
//! `abort` for a response that ends with the connection, until that is complete, and for a client
//! that receives nothing for too long.
//!
//! [`Aborted`]: crate::server::Outcome::Aborted
//! [`Clock`]: clock::Clock
//! [`Clock::poll_due`]: clock::Clock::poll_due
//! [`Clock::poll_slow_reader`]: clock::Clock::poll_slow_reader
//! [`Dispatch`]: dispatch::Dispatch
//! [`Failed`]: crate::server::Outcome::Failed
//! [`Http1Downstream::forward`]: crate::server::engine::Http1Downstream::forward
//! [`Forwarded::Disconnected`]: crate::server::engine::Forwarded::Disconnected
//! [`Forwarded::Typed`]: crate::server::engine::Forwarded::Typed
//! [`RequestRecord::answered`]: crate::server::connection::RequestRecord::answered

mod batch;
mod body_channel;
mod client;
mod clock;
pub(crate) mod date;
mod dispatch;
mod fields;
mod requests;
mod response;

pub(crate) use self::body_channel::{BodyReader, ChannelError};
pub(crate) use self::client::Client;
pub(crate) use self::fields::{read_head, read_trailers};
pub(crate) use self::requests::serve;
pub(crate) use self::response::{declared_length, write_text, write_trailers};
pub(crate) use super::connection::Transport;
