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
    /// Waits for a state that was not returned yet. The first call returns the first state as soon as it is
    /// known.
    ///
    /// # Errors
    ///
    /// The state is unknown. The last returned state stays in force, and the call may be repeated.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped no state is lost: the next call returns it.
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
    /// Creates an error that names the source and the cause.
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
