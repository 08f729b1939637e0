//! The sources of services and nodes.
//!
//! A source gives complete states, never differences. A consumer always plans for the latest one, however
//! many it has skipped.

mod files;
#[cfg(feature = "kube")]
pub mod kubernetes;
mod memory;
mod readiness;

use std::error::Error;

use async_trait::async_trait;

pub use self::files::{DocumentError, FileSource, FromDocument, read_documents};
pub use self::memory::{MemorySource, Publisher, memory};

/// The interval at which values that depend on the time are read again.
pub(crate) const RECHECK: std::time::Duration = std::time::Duration::from_secs(15);

/// A source of services (`Source<Service>`) or nodes (`Source<Node>`).
#[async_trait]
pub trait Source<T>: Send {
    /// Waits for a state that has not been returned yet; the first call returns the first one as soon as it is known.
    ///
    /// # Errors
    ///
    /// The state cannot be known. The last one that was returned stays in force, and the source may be asked again.
    ///
    /// # Cancel safety
    ///
    /// When the future is dropped no state is lost: the next call returns it.
    async fn next(&mut self) -> Result<Vec<T>, SourceError>;
}

/// The reason why a state is unknown.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct SourceError {
    message: String,
    source: Option<Box<dyn Error + Send + Sync>>,
}

impl SourceError {
    /// An error that says which source it is and what is wrong with it.
    pub fn new(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            source: None,
        }
    }

    /// Adds the cause.
    #[must_use]
    pub fn with_source(mut self, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        self.source = Some(source.into());
        self
    }
}
