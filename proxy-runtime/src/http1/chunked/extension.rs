//! Chunk extensions, which are rarely used except in attacks: RFC 9112 section 7.1.1.

use crate::http1::bytes::{TOKEN, classes_of};

/// The position within `;name=value;name="value"`.
///
/// The "bad" white space of the grammar is rejected. Quotes are tracked, so that a `;` or an
/// apparent line end within them has no effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Extension {
    /// After `;`.
    NameStart,
    Name,
    /// After `=`.
    ValueStart,
    Value,
    Quoted,
    /// After a backslash in quotes.
    Escaped,
    /// After the closing quote.
    QuotedEnd,
}

/// The state after a byte.
pub(super) enum NextState {
    Extension(Extension),
    /// The byte was the carriage return that ends the line.
    LineFeed,
}

impl Extension {
    /// Returns the state after `byte`; `None` if the byte is not allowed here.
    pub(super) fn next(self, byte: u8) -> Option<NextState> {
        let is_token = classes_of(byte) & TOKEN != 0;
        Some(NextState::Extension(match (self, byte) {
            (Self::Name | Self::Value | Self::QuotedEnd, b'\r') => {
                return Some(NextState::LineFeed);
            }
            (Self::Name | Self::Value | Self::QuotedEnd, b';') => Self::NameStart,
            (Self::NameStart | Self::Name, _) if is_token => Self::Name,
            (Self::Name, b'=') => Self::ValueStart,
            (Self::ValueStart, b'"') => Self::Quoted,
            (Self::ValueStart | Self::Value, _) if is_token => Self::Value,
            (Self::Quoted, b'"') => Self::QuotedEnd,
            (Self::Quoted, b'\\') => Self::Escaped,
            (Self::Quoted | Self::Escaped, b'\t' | b' '..=b'~' | 0x80..) => Self::Quoted,
            // Such as white space, which the grammar calls bad.
            _ => return None,
        }))
    }
}
