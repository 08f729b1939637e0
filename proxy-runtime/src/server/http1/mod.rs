//! The server's HTTP/1.1.
//!
//! One task a connection, and in it one loop: a head is read, the request is refused or served, the response is written,
//! and the next request follows; pipelined ones are served in order. A connection that waits holds no buffer, is not
//! polled but when something comes, and has one timer that is armed seldom ([`Clock`]). It is told of a drain by being
//! woken.
//!
//! # Two lanes
//!
//! *The raw lane*: if the server's service is a [`ProxyService`](crate::ProxyService), each request that passed the
//! checks is first offered to [`engine::forward`](crate::server::engine::forward) with the [`Client`]. The list of what that declines, and
//! the table of relays behind both lanes, are [there](crate::server::engine#four-relays). Between the two holds:
//!
//! - The head is at the front of `client.input` (`request.head_length()` bytes), its fields are in `client.table`; the
//!   path needs no normalization. Who serves the request consumes head and body from the input; what follows is the next
//!   request. To decline ([`Forwarded::Typed`]), all is left as it was.
//! - `client.output` is empty, and has to be so again at the end. Its memory ([`Client::lend_output`]), like that of the table, is
//!   the connection's only until it is idle.
//! - [`Client::is_closing`] decides, right before the head of the response is written, whether that says
//!   `Connection: close`; then `keep` is `false`.
//! - While a request is relayed, or an answer of the proxy's own is written, whoever waits polls [`Clock::poll_slow_reader`]
//!   (ready: give up, [`Forwarded::Gone`]); a relay whose request is at its end polls [`Client::poll_gone`] as well (likewise). While
//!   there is no connection to a destination, nothing waits for the client, and [`Client::unless_gone`] watches it. How slow its
//!   upload may be is the relay's to see (`Outbound::pace`). Own deadlines are asked of [`Clock::poll_due`]. All of it in the
//!   connection's own task: the timer knows one waker.
//! - `client.record` is there, and stays. `received` and `sent` are counted in it (bytes of bodies). If it has a draft of the
//!   access log's line, [`RequestRecord::answered`] is told. Its `outcome` says [`Aborted`] until the client has its whole response,
//!   and [`Failed`] if that breaks off for another reason than the client. Dropped with the connection at any moment, it is logged
//!   with what is known by then.
//! - A request body that is not read to its end: `client.state.unread` is set, and `keep` is `false`; the loop lingers.
//! - `client.state.abort`, by which the socket is reset instead of closed, is set by [`Clock::poll_slow_reader`] alone: no response
//!   of this lane ends with the connection, since one that does at the destination goes on in chunks, so a client sees that it
//!   broke off.
//!
//! *The typed lane*: everything else becomes an `http` request for the service ([`dispatch`]). There the body of a request is read
//! when the service asks for it ([`body_channel`]), and its pace is the `UploadPace` of that body. While the service is waited for,
//! or the client, [`Dispatch`] polls [`Clock::poll_slow_reader`], then the body or [`Client::poll_gone`]. It sets `abort` for a
//! response that ends with the connection, until that is whole, and for a client that takes nothing for too long.
//!
//! [`Aborted`]: crate::server::Outcome::Aborted
//! [`Clock`]: clock::Clock
//! [`Clock::poll_due`]: clock::Clock::poll_due
//! [`Clock::poll_slow_reader`]: clock::Clock::poll_slow_reader
//! [`Dispatch`]: dispatch::Dispatch
//! [`Failed`]: crate::server::Outcome::Failed
//! [`Forwarded::Gone`]: crate::server::engine::Forwarded::Gone
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

pub(crate) use self::body_channel::{BodyReader, UploadError};
pub(crate) use self::client::Client;
pub(crate) use self::fields::read_head;
pub(crate) use self::requests::serve;
pub(crate) use self::response::{said_length, write_text};
pub(crate) use super::connection::Transport;
