//! Heads: start line and fields, parsed in place.

mod authority;
mod connection;
mod length;
mod lines;
mod request;
mod request_line;
mod response;
mod status_line;
mod table;
mod target;
#[cfg(test)]
mod tests;
mod view;

pub(crate) use self::authority::is_authority;
pub(super) use self::lines::{Section, Stop, read_fields};
#[cfg(feature = "server")]
pub(crate) use self::request::read_request;
pub use self::request::{Method, RawRequest, parse_request};
pub use self::response::{RawResponse, RequestInfo, parse_response};
pub use self::table::HeadTable;
pub use self::target::TargetForm;
pub use self::view::RequestView;

/// The completeness of a head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status<T> {
    /// The head is complete.
    Complete(T),
    /// The end of the head has not arrived.
    Partial,
}

/// The version of a message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Version {
    /// HTTP/1.0: no chunks, and a connection ends with the response unless both sides say `keep-alive`.
    Http10,
    /// HTTP/1.1.
    #[default]
    Http11,
}
