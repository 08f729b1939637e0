//! Heads of requests and responses in `http` types: the parts that routing, filters and transforms read and change.

mod address_text;
mod error_form;
mod error_pages;
pub(crate) mod headers;
mod http_head;
mod in_place;
#[cfg(all(feature = "server", feature = "http2"))]
mod local_reply;
mod mutations;

pub(crate) use self::address_text::AddressText;
pub(crate) use self::error_form::ErrorForm;
pub use self::error_pages::ErrorPages;
pub(crate) use self::error_pages::{ErrorBodies, ErrorPage};
pub(crate) use self::http_head::HttpHead;
#[cfg(feature = "http2")]
pub(crate) use self::http_head::is_websocket_connect;
pub(crate) use self::in_place::put_in_place;
#[cfg(all(feature = "server", feature = "http2"))]
pub(crate) use self::local_reply::LocalReplyMark;
pub use self::mutations::InvalidEdit;
pub(crate) use self::mutations::{HeaderMutations, HeldValues, ResponseNotes};
