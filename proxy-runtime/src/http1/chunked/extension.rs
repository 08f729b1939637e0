//! Extensions of chunks, which nobody uses and attackers do: RFC 9112 section 7.1.1.

use crate::http1::bytes::{TOKEN, classes_of};

/// Where in `;name=value;name="value"` one is.
///
/// The grammar's "bad" white space is refused. A quoted value is followed through its quotes, so that neither a `;` in it nor
/// a line end that it seems to have is taken for another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Extension {
    /// Behind `;`.
    NameStart,
    Name,
    /// Behind `=`.
    ValueStart,
    Value,
    Quoted,
    /// Behind a backslash in quotes.
    Escaped,
    /// Behind the closing quote.
    QuotedEnd,
}

/// What follows a byte.
pub(super) enum Next {
    Extension(Extension),
    /// The byte was the carriage return that ends the line.
    LineFeed,
}

impl Extension {
    /// What follows `byte`; `None` if it may not stand here.
    pub(super) fn next(self, byte: u8) -> Option<Next> {
        let is_token = classes_of(byte) & TOKEN != 0;
        Some(Next::Extension(match (self, byte) {
            (Self::Name | Self::Value | Self::QuotedEnd, b'\r') => return Some(Next::LineFeed),
            (Self::Name | Self::Value | Self::QuotedEnd, b';') => Self::NameStart,
            (Self::NameStart | Self::Name, _) if is_token => Self::Name,
            (Self::Name, b'=') => Self::ValueStart,
            (Self::ValueStart, b'"') => Self::Quoted,
            (Self::ValueStart | Self::Value, _) if is_token => Self::Value,
            (Self::Quoted, b'"') => Self::QuotedEnd,
            (Self::Quoted, b'\\') => Self::Escaped,
            (Self::Quoted | Self::Escaped, b'\t' | b' '..=b'~' | 0x80..) => Self::Quoted,
            _ => return None,
        }))
    }
}
