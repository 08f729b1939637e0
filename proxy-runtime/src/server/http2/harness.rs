//! A test harness for the validation of frames.

use super::frames::{ConnectionFrames, FrameAction, FrameHeader};

/// The validation of an HTTP/2 client's frames, as a part of the server by itself, for tests.
#[derive(Debug, Default)]
pub struct FrameHarness(ConnectionFrames);

impl FrameHarness {
    /// Begins with a connection after its preface.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Validates whole frames. Returns the bytes that are passed on.
    ///
    /// # Errors
    ///
    /// Returns the error code if the connection must end.
    pub fn pass(&mut self, mut frames: &[u8]) -> Result<Vec<u8>, u32> {
        let mut passed = Vec::new();
        while let Some(head) = FrameHeader::of(frames) {
            let taken = match self.0.look(head, frames) {
                FrameAction::Pass(length) => {
                    let length = length.min(frames.len());
                    passed.extend_from_slice(&frames[..length]);
                    length
                }
                FrameAction::Replace { taken, with } => {
                    passed.extend(with);
                    taken
                }
                FrameAction::Wait { .. } => break,
                FrameAction::End(reason) => return Err(reason.into()),
            };
            frames = &frames[taken..];
        }
        Ok(passed)
    }

    /// Number of fields in the HPACK table of the connection.
    #[must_use]
    pub fn numbered_fields(&self) -> usize {
        self.0.numbered_fields()
    }
}
