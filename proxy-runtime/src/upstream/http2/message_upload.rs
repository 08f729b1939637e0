//! The body of a request in the framing of HTTP/1.1, on its way to a stream of HTTP/2.

use std::io::IoSlice;

use bytes::Bytes;
use http::HeaderMap;

use crate::http1::{ChunkTracker, HeadTable};
use crate::upstream::http1::{limits, to_map};

/// The most bytes of framing without content that are accepted without a window.
pub(super) const MOST_FRAMING: usize = 1024;

/// The body of a request that is left to be sent.
pub(super) enum UploadBody {
    /// A tunnel, if the destination agrees to one.
    Tunnel,
    Length(u64),
    Chunks(Box<UploadChunks>),
}

/// The chunks of a request.
#[derive(Default)]
pub(super) struct UploadChunks {
    tracker: ChunkTracker,
    table: HeadTable,
    /// The beginning of a trailer section.
    section: Vec<u8>,
    trailers: Option<HeaderMap>,
}

impl UploadBody {
    pub(super) fn has_ended(&self) -> bool {
        match self {
            Self::Tunnel => false,
            Self::Length(left) => *left == 0,
            Self::Chunks(chunks) => chunks.tracker.has_ended(),
        }
    }

    /// Returns true if these bytes are framing without content, so that no window is needed for them.
    pub(super) fn is_framing(&self, slices: &[IoSlice<'_>]) -> bool {
        let Self::Chunks(chunks) = self else {
            return false;
        };
        let mut bytes = chunks.section.clone();
        for slice in slices {
            bytes.extend_from_slice(&slice[..slice.len().min(MOST_FRAMING)]);
        }
        // On a copy, since these bytes are not accepted yet.
        let (mut tracker, mut table) = (chunks.tracker, HeadTable::new());
        bytes.len() <= MOST_FRAMING
            && tracker
                .track(&bytes, &limits(), &mut table)
                .is_ok_and(|progress| progress.payload == 0)
    }

    /// Follows the framing, and adds the content to `content`.
    pub(super) fn follow(&mut self, bytes: &[u8], content: &mut Vec<u8>) -> Result<(), ()> {
        match self {
            Self::Tunnel => {
                content.extend_from_slice(bytes);
                Ok(())
            }
            Self::Length(left) => {
                *left = left.checked_sub(bytes.len() as u64).ok_or(())?;
                content.extend_from_slice(bytes);
                Ok(())
            }
            Self::Chunks(chunks) => chunks.follow(bytes, content),
        }
    }

    pub(super) fn take_trailers(&mut self) -> Option<HeaderMap> {
        match self {
            Self::Tunnel | Self::Length(_) => None,
            Self::Chunks(chunks) => chunks.trailers.take(),
        }
    }
}

impl UploadChunks {
    pub(super) fn follow(&mut self, bytes: &[u8], content: &mut Vec<u8>) -> Result<(), ()> {
        let begun;
        // A trailer section is parsed as a whole, so its beginning waits for the rest.
        let bytes = match self.section.is_empty() {
            true => bytes,
            false => {
                self.section.extend_from_slice(bytes);
                begun = std::mem::take(&mut self.section);
                &begun[..]
            }
        };
        let progress = self
            .tracker
            .track_data(bytes, &limits(), &mut self.table, |data| {
                content.extend_from_slice(data)
            });
        let progress = progress.map_err(drop)?;
        let rest = &bytes[progress.consumed..];
        if !progress.ended {
            self.section.extend_from_slice(rest);
        } else if progress.trailers > 0 {
            let section = Bytes::copy_from_slice(&rest[..progress.trailers]);
            let trailers = to_map(self.table.fields(), &section).map_err(drop)?;
            self.trailers = Some(trailers).filter(|trailers| !trailers.is_empty());
        }
        Ok(())
    }
}

/// Returns the content and the trailers of a chunked body that arrives in these parts. `None` if it is malformed or
/// has not ended.
#[cfg(any(test, feature = "testing"))]
pub(crate) fn upload(parts: &[&[u8]]) -> Option<(Vec<u8>, Option<HeaderMap>)> {
    let mut body = UploadBody::Chunks(Box::default());
    let mut content = Vec::new();
    for part in parts {
        body.follow(part, &mut content).ok()?;
    }
    body.has_ended().then(|| (content, body.take_trailers()))
}
