use std::fmt;

use super::size::{MAX_ENCODED_TAGS, encoded_len, encoded_tag};
use crate::Tags;
use crate::catalog::TagError;
use crate::client::ClientError;

/// The reason why a registration failed.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RegistrationError {
    /// A tag that proxies would not understand. Nothing was sent.
    #[error(transparent)]
    InvalidTag(#[from] TagError),
    /// A blank service name, which no proxy would see. Nothing was sent.
    #[error("the service has no name")]
    NoService,
    /// Tags that are too long for the gossip. Nothing was sent. An agent that keeps its tags in a file
    /// would write them there before it rejects them, and could not be started again.
    #[error(transparent)]
    TagsTooLong(#[from] TagsTooLong),
    /// A node that announces another service already. One node announces one service.
    #[error(
        "the node `{node}` announces the service `{service}`: give this service an agent of its own, or let it take over"
    )]
    Occupied {
        /// The node of the agent.
        node: String,
        /// The service that it announces.
        service: String,
    },
    /// An agent that could not be reached, or rejected the request.
    #[error("the agent did not accept the registration")]
    Agent(#[from] ClientError),
    /// A shutdown of the runtime that kept the registration.
    #[error("the registration is no longer kept: its runtime has ended")]
    Ended,
}

impl RegistrationError {
    /// Returns true if a retry may succeed later, without a change of the registration.
    pub fn is_transient(&self) -> bool {
        matches!(self, Self::Agent(error) if error.is_transient())
    }
}

/// Tags that do not fit into the gossip.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TagsTooLong {
    /// Length of the tags, in bytes.
    pub encoded: usize,
    /// The limit: [`MAX_ENCODED_TAGS`].
    pub limit: usize,
    /// The length of each tag, the longest first: those of the registration, and the other tags of the
    /// node.
    pub tags: Vec<TagLength>,
}

/// The length of a tag in the gossip.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TagLength {
    /// The tag's name.
    pub tag: String,
    /// The tag's length in bytes: its name, its value, and the overhead of both.
    pub encoded: usize,
}

impl TagsTooLong {
    /// Returns an error if these tags do not fit.
    pub(super) fn check(tags: &Tags) -> Result<(), Self> {
        let encoded = encoded_len(tags);
        if encoded <= MAX_ENCODED_TAGS {
            return Ok(());
        }
        let lengths = tags.iter().map(|(key, value)| TagLength {
            tag: String::from_utf8_lossy(key).into_owned(),
            encoded: encoded_tag(key, value),
        });
        let mut lengths: Vec<_> = lengths.collect();
        lengths.sort_by(|a, b| b.encoded.cmp(&a.encoded).then_with(|| a.tag.cmp(&b.tag)));
        Err(Self {
            encoded,
            limit: MAX_ENCODED_TAGS,
            tags: lengths,
        })
    }
}

impl std::error::Error for TagsTooLong {}

impl fmt::Display for TagsTooLong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        /// Maximum number of tags in the message; the error has all.
        const SHOWN: usize = 3;
        let Self {
            encoded,
            limit,
            tags,
        } = self;
        let over = encoded.saturating_sub(*limit);
        write!(
            f,
            "the node's tags take {encoded} bytes of {limit}; shorten them by {over}:"
        )?;
        for (nth, TagLength { tag, encoded }) in tags.iter().take(SHOWN).enumerate() {
            let comma = if nth == 0 { "" } else { "," };
            write!(f, "{comma} `{tag}` takes {encoded}")?;
        }
        Ok(())
    }
}
