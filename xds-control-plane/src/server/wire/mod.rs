//! Responses as the bytes of gRPC's messages, most of which all streams share.
//!
//! Field numbers are those of `envoy/service/discovery/v3/discovery.proto`.

mod blocks;
mod fields;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use bytes::Bytes;

pub(crate) use self::blocks::Blocks;
use self::blocks::{Kind, Selection};
use self::fields::{Count, Sink, head, text};
use super::protocol::{Reply, StreamProtocol};
use crate::snapshot::Subscription;

/// A response that only has to be written.
#[derive(Debug, Clone)]
pub(crate) struct Response {
    pub(crate) reply: Reply,
    pub(crate) protocol: StreamProtocol,
    pub(crate) subscription: Subscription,
    /// The server's name; not written if empty.
    pub(crate) identifier: Arc<str>,
}

/// A message in gRPC's frame, in pieces that are sent one after the other. Long pieces are shared.
#[derive(Debug, Clone)]
pub(crate) struct Framed {
    pieces: Vec<Bytes>,
    message_len: usize,
}

/// gRPC has four bytes for the length of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the response has {0} bytes, and no message of gRPC has more than 4 GiB")]
pub(crate) struct TooLong(usize);

/// Minimum length of a resource that is shared. A shorter one fits into one frame of HTTP/2 (RFC 9113,
/// section 6.5.2), and copying it is cheaper than keeping account of it.
const SHARED_FROM: usize = 16 * 1024;

/// "Compressed-Flag" and "Message-Length" of
/// <https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md>.
const PREFIX: usize = 5;

fn prefix(length: usize) -> Result<[u8; PREFIX], TooLong> {
    const NOT_COMPRESSED: u8 = 0;
    let [a, b, c, d] = u32::try_from(length)
        .map_err(|_| TooLong(length))?
        .to_be_bytes();
    Ok([NOT_COMPRESSED, a, b, c, d])
}

impl Framed {
    /// Number of bytes of the message, without its prefix.
    pub(crate) fn message_len(&self) -> usize {
        self.message_len
    }

    /// Returns the pieces in order. None of them is empty.
    pub(crate) fn into_pieces(self) -> std::vec::IntoIter<Bytes> {
        self.pieces.into_iter()
    }
}

impl Response {
    /// `envoy.service.discovery.v3.DiscoveryResponse` or `DeltaDiscoveryResponse`, with its prefix.
    pub(crate) fn framed(&self, blocks: &Blocks) -> Result<Framed, TooLong> {
        let resources = self.resources();
        let mut around = Count::default();
        self.write_before(&mut around);
        self.write_after(&mut around);
        let Count(around) = around;
        if resources.has(SHARED_FROM) {
            let block = blocks.of(&resources);
            let message_len = around + block.len();
            let mut before = Vec::with_capacity(PREFIX + around);
            before.put(&prefix(message_len)?);
            self.write_before(&mut before);
            let mut after = Vec::with_capacity(around);
            self.write_after(&mut after);
            return Ok(Framed {
                pieces: vec![before.into(), block, after.into()],
                message_len,
            });
        }
        let mut length = Count(around);
        resources.write(&mut length);
        let Count(message_len) = length;
        let mut whole = Vec::with_capacity(PREFIX + message_len);
        whole.put(&prefix(message_len)?);
        self.write(&mut whole);
        Ok(Framed {
            pieces: vec![whole.into()],
            message_len,
        })
    }

    /// The message alone.
    pub(crate) fn encode_to_vec(&self) -> Vec<u8> {
        let mut length = Count::default();
        self.write(&mut length);
        let mut buffer = Vec::with_capacity(length.0);
        self.write(&mut buffer);
        buffer
    }

    fn resources(&self) -> Selection<'_> {
        Selection {
            kind: Kind {
                resource_type: self.reply.resource_type,
                protocol: self.protocol,
                subscription: self.subscription,
            },
            resources: &self.reply.resources,
        }
    }

    fn write(&self, sink: &mut impl Sink) {
        self.write_before(sink);
        self.resources().write(sink);
        self.write_after(sink);
    }

    fn write_before(&self, sink: &mut impl Sink) {
        const VERSION: u32 = 1;
        text(sink, VERSION, &self.reply.version.to_string());
    }

    fn write_after(&self, sink: &mut impl Sink) {
        const TYPE_URL: u32 = 4;
        const NONCE: u32 = 5;
        const REMOVED: u32 = 6;
        let control_plane = match self.protocol {
            StreamProtocol::Sotw => 6,
            StreamProtocol::Delta => 7,
        };
        text(sink, TYPE_URL, self.reply.resource_type.type_url());
        if self.reply.nonce > 0 {
            text(sink, NONCE, &self.reply.nonce.to_string());
        }
        if self.protocol == StreamProtocol::Delta {
            for name in &self.reply.removed {
                text(sink, REMOVED, name);
            }
        }
        if !self.identifier.is_empty() {
            const IDENTIFIER: u32 = 1;
            let mut length = Count::default();
            text(&mut length, IDENTIFIER, &self.identifier);
            head(sink, control_plane, length.0);
            text(sink, IDENTIFIER, &self.identifier);
        }
    }
}
