use std::fmt;

use super::size::{MAX_ENCODED_TAGS, encoded_len, encoded_tag};
use crate::Tags;
use crate::catalog::TagError;
use crate::client::ClientError;

/// Why a registration did not happen.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RegistrationError {
    /// A tag that proxies would not understand; nothing was sent.
    #[error(transparent)]
    InvalidTag(#[from] TagError),
    /// The service's name is blank, so no proxy would see it; nothing was sent.
    #[error("the service has no name")]
    NoService,
    /// The tags that the node would have are too long for the gossip; nothing was sent. An agent that keeps its tags in
    /// a file would write them there before it refuses them, and could not be started again.
    #[error(transparent)]
    TagsTooLong(#[from] TagsTooLong),
    /// The agent's node announces another service, and one node announces one service.
    #[error(
        "the node `{node}` announces the service `{service}`: give this service an agent of its own, or let it take over"
    )]
    Occupied {
        /// The node of the agent.
        node: String,
        /// What it announces.
        service: String,
    },
    /// The agent did not do it, or could not be asked.
    #[error("the agent did not take the registration")]
    Agent(#[from] ClientError),
    /// The runtime that kept the registration is shutting down.
    #[error("the registration is no longer kept: its runtime has ended")]
    Ended,
}

impl RegistrationError {
    /// Whether the same may succeed later, without anybody changing anything.
    pub fn is_transient(&self) -> bool {
        matches!(self, Self::Agent(error) if error.is_transient())
    }
}

/// Tags that do not fit into the gossip.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TagsTooLong {
    /// How many bytes they take.
    pub encoded: usize,
    /// How many there are: [`MAX_ENCODED_TAGS`].
    pub limit: usize,
    /// What each of them takes, the longest first: those of the registration, and those that the node has besides.
    pub tags: Vec<TagLength>,
}

/// What a tag takes in the gossip.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TagLength {
    /// The tag's name.
    pub tag: String,
    /// Its bytes, with its name and what is around both.
    pub encoded: usize,
}

impl TagsTooLong {
    /// An error if these tags do not fit.
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
        /// Those that are worth looking at; the error has all.
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
