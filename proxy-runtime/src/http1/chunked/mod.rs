//! Chunked transfer coding: RFC 9112 section 7.1.

mod extension;
#[cfg(test)]
mod tests;
mod tracker;
mod writer;

pub use self::tracker::{ChunkTracker, Progress};
pub use self::writer::{CHUNK_END, ChunkHead, LAST_CHUNK};
