//! The errors of host patterns.

use std::net::Ipv6Addr;

use thiserror::Error;

use crate::suggest::shortened;

/// The reason why a host pattern is rejected.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum HostError {
    /// An empty text.
    #[error("empty host name")]
    Empty,
    /// A port without a name.
    #[error("no host name before the port")]
    NoName,
    /// A URL.
    #[error("`{}` is a URL, not a host", shortened(text))]
    Url {
        /// The text as written.
        text: String,
    },
    /// A port that is not a number from 1 to 65535.
    #[error("`{}` is not a port from 1 to 65535", shortened(port))]
    Port {
        /// The text before the port.
        name: String,
        /// The port as written.
        port: String,
    },
    /// An IPv6 address that is malformed or not in brackets.
    #[error(
        "`{}` is neither a name with a port nor an IPv6 address in brackets",
        shortened(text)
    )]
    Ipv6 {
        /// The text as written.
        text: String,
    },
    /// A `*` that is not the first label.
    #[error("`{}` has a `*` that is not the whole first label", shortened(text))]
    Wildcard {
        /// The text as written.
        text: String,
    },
    /// Two `.` next to each other, or one at the start.
    #[error("`{}` has an empty label", shortened(text))]
    EmptyLabel {
        /// The text as written.
        text: String,
    },
    /// A character that no host has.
    #[error("`{}` cannot be in a host", character.escape_debug())]
    Character {
        /// The text as written.
        text: String,
        /// The character.
        character: char,
    },
    /// A name beyond ASCII that is not a valid one, in Unicode or in ASCII form.
    #[error("`{}` is not a valid internationalized name", shortened(text))]
    Idna {
        /// The text as written.
        text: String,
    },
    /// A name that DNS has no room for.
    #[error("the name is longer than {} bytes", super::MAX_NAME)]
    TooLong,
}

impl HostError {
    /// Returns the correction, if one is known.
    pub fn suggestion(&self) -> Option<String> {
        match self {
            Self::Empty => Some("write a host such as `example.com`, or leave `Hosts` out".into()),
            Self::NoName => Some("write `*` before the port for any name".into()),
            Self::Url { text } => {
                let (_, rest) = text.split_once("://")?;
                let host = rest.split(['/', '?', '#']).next()?;
                (!host.is_empty()).then(|| format!("write `{host}`"))
            }
            Self::Port { name, port } if port.is_empty() => Some(format!("write `{name}`")),
            Self::Port { .. } => None,
            Self::Ipv6 { text } => {
                let address: Ipv6Addr = text.parse().ok()?;
                Some(format!("write `[{address}]`"))
            }
            Self::Wildcard { text } => {
                let (_, domain) = text.rsplit_once("*").unwrap_or(("", text));
                let domain = domain.trim_start_matches(|c| c != '.');
                (domain.len() > 1).then(|| format!("write `*{domain}`"))
            }
            Self::Character { text, character } => match character {
                '/' | '?' | '#' => {
                    let host = text.split(*character).next()?;
                    Some(format!(
                        "write `{host}` here and the rest in `Path` or `QueryParameters`"
                    ))
                }
                ' ' if text.trim() != text => Some(format!("write `{}`", text.trim())),
                _ => None,
            },
            Self::Idna { text } if text.is_ascii() => Some("write the name in Unicode".into()),
            Self::EmptyLabel { .. } | Self::Idna { .. } | Self::TooLong => None,
        }
    }
}
