//! The server's HTTP/1.1.
//!
//! One task a connection, and in it one loop: a head is read, the request is refused or served, the response is written,
//! and the next request follows; pipelined ones are served in order. A connection that waits holds no buffer, is not
//! polled but when something comes, and has one timer that is armed seldom ([`Clock`]). It is told of a drain by being
//! woken.
//!
//! # Two ways
//!
//! *The native lane*: if the server's service is a [`ProxyService`](crate::ProxyService), each request that passed the
//! checks is first offered to [`engine::forward`](crate::engine::forward) with the [`Client`]:
//!
//! - The head is at the front of `client.input` (`request.head_length()` bytes), its fields are in `client.table`; the
//!   path needs no normalization. Who serves the request consumes head and body from the input; what follows is the next
//!   request. To decline ([`Lane::Typed`](crate::engine::Lane::Typed)), all is left as it was.
//! - `client.output` is empty, and has to be so again at the end. Its memory (`Client::lend_output`), like that of the table, is the
//!   connection's only until it is idle.
//! - [`Client::is_closing`] decides, right before the head of the response is written, whether that says
//!   `Connection: close`; then `keep` is `false`.
//! - While it waits for anything, it polls [`Clock::poll_slow_reader`] (ready: give up, [`Lane::Gone`]) and, when the
//!   request's body is at its end, [`Client::poll_gone`] (likewise). An upload of `http` types that it waits for has its `UploadPace`
//!   (`server/connection/pace.rs`). Own deadlines are asked of [`Clock::poll_due`]. All of it in the connection's own
//!   task: the timer knows one waker.
//! - `client.exchange` is there: `received` and `sent` are counted in it (bytes of bodies), and
//!   [`Exchange::answered`](crate::server::connection::Exchange::answered) is told; a response that breaks off sets its
//!   `outcome`. Dropped with the connection at any moment, it is logged with what is known by then.
//! - A request body that is not read to its end: `client.state.unread` is set, and `keep` is `false`; the loop lingers.
//! - A response that breaks off and whose end would not be seen: `client.state.abort` is set.
//!
//! *The typed way*: everything else becomes an `http` request for the service.
//!
//! [`Clock`]: clock::Clock
//! [`Clock::poll_due`]: clock::Clock::poll_due
//! [`Clock::poll_slow_reader`]: clock::Clock::poll_slow_reader
//! [`Lane::Gone`]: crate::engine::Lane::Gone

mod batch;
mod body_channel;
mod client;
mod clock;
pub(crate) mod date;
mod dispatch;
mod fields;
mod requests;
mod response;
mod upgrade;

pub(crate) use self::body_channel::{BodyReader, UploadError};
pub(crate) use self::client::Client;
pub(crate) use self::requests::serve;
pub(crate) use self::response::{said_length, write_text};
#[cfg(feature = "http2")]
pub(in crate::server) use self::upgrade::Switch;
pub use self::upgrade::{OnUpgrade, Upgraded};
pub(crate) use super::connection::Transport;
