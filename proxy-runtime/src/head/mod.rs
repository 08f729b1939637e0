//! Heads of requests and responses in `http` types: what routing, filters and transforms read of them and change in them.

mod address_text;
mod edits;
pub(crate) mod headers;
mod http_head;
mod in_place;

pub(crate) use self::address_text::AddressText;
pub use self::edits::InvalidEdit;
pub(crate) use self::edits::{HeadEdits, ResponseNotes};
pub(crate) use self::http_head::HttpHead;
#[cfg(feature = "http2")]
pub(crate) use self::http_head::is_websocket_connect;
pub(crate) use self::in_place::put_in_place;
