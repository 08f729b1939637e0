//! What is done with header blocks before `h2` has them, by itself.

use super::frames::{Frames, Head, Verdict};

/// The look at an HTTP/2 client's frames that comes before they are read: a part of the server by itself, to be tested.
#[derive(Debug, Default)]
pub struct FrameTrial(Frames);

impl FrameTrial {
    /// Begins with a connection, behind its preface.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns what is passed on of whole frames that came, or the code that the connection ends with.
    ///
    /// # Errors
    ///
    /// The connection ends.
    pub fn pass(&mut self, mut frames: &[u8]) -> Result<Vec<u8>, u32> {
        let mut passed = Vec::new();
        while let Some(head) = Head::of(frames) {
            let taken = match self.0.look(head, frames) {
                Verdict::Pass(length) => {
                    let length = length.min(frames.len());
                    passed.extend_from_slice(&frames[..length]);
                    length
                }
                Verdict::Replace { taken, with } => {
                    passed.extend(with);
                    taken
                }
                Verdict::Wait { .. } => break,
                Verdict::End(reason) => return Err(reason.into()),
            };
            frames = &frames[taken..];
        }
        Ok(passed)
    }

    /// How many fields the connection has given numbers to.
    #[must_use]
    pub fn numbered_fields(&self) -> usize {
        self.0.numbered_fields()
    }
}
