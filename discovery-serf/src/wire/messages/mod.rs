//! The content of messages.
//!
//! Messages of an agent are decoded with as few requirements as possible: unknown fields are ignored, nil
//! is empty, strings may be any bytes. Only the fields that are needed to interpret a message are required.

#[cfg(any(test, feature = "testing"))]
mod agent;
mod event;
#[cfg(test)]
pub(crate) mod golden;
mod member;
mod request;
mod stats;
#[cfg(test)]
mod tests;

use discovery_core::text::shortened;
use serde::Deserialize;
use serde::de::DeserializeOwned;

#[cfg(any(test, feature = "testing"))]
pub(crate) use self::agent::{
    RequestHeader, encode_event, encode_joined, encode_members, encode_stats,
};
pub(crate) use self::event::decode_event;
pub(crate) use self::member::decode_members;
pub(crate) use self::request::{
    AUTHENTICATION_REQUIRED, HANDSHAKE_REQUIRED, ReplyBody, Request, UNSUPPORTED_COMMAND,
};
pub(crate) use self::stats::decode_stats;

#[cfg(any(test, feature = "testing"))]
use super::encode::Encoder;
use super::text::Text;

/// A message that does not have the expected form.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what} cannot be understood: {reason}")]
pub(crate) struct DecodeError {
    what: &'static str,
    /// The reason, short and printable for every input.
    reason: String,
}

fn decode<T: DeserializeOwned>(what: &'static str, frame: &[u8]) -> Result<T, DecodeError> {
    rmp_serde::from_slice(frame).map_err(|error| DecodeError {
        what,
        reason: shortened(&error.to_string(), 200),
    })
}

/// The first part of each reply, and of each record of a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ResponseHeader {
    /// The number of the request.
    pub(crate) seq: u64,
    /// Empty: the command has succeeded.
    pub(crate) error: String,
}

impl ResponseHeader {
    pub(crate) fn decode(frame: &[u8]) -> Result<Self, DecodeError> {
        #[derive(Deserialize)]
        #[serde(rename_all = "PascalCase")]
        struct Fields {
            // An agent always sends both. Without either there is no telling a header from anything else.
            seq: u64,
            error: Text,
        }
        let Fields { seq, error } = decode("the header of a reply", frame)?;
        Ok(Self {
            seq,
            error: error.lossy().into_owned(),
        })
    }

    #[cfg(any(test, feature = "testing"))]
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        let mut out = Encoder::new(out);
        out.map(2);
        out.text("Error").text(&self.error);
        out.text("Seq").uint(self.seq);
    }
}

/// Number of nodes that were joined: the body of the reply to `join`.
pub(crate) fn decode_joined(frame: &[u8]) -> Result<u32, DecodeError> {
    #[derive(Deserialize)]
    #[serde(rename_all = "PascalCase")]
    struct Fields {
        num: u32,
    }
    decode::<Fields>("the reply to join", frame).map(|fields| fields.num)
}
