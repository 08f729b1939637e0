//! What a session shows to those who ask.

use std::sync::Arc;

use discovery_core::Discovery;
use proxy_model::Problems;

/// How a session is doing.
#[derive(Debug, Clone, Default)]
pub(super) struct View {
    /// What the control plane wants to be served; `None`: it has not said so yet.
    pub(super) discovery: Option<Arc<Discovery>>,
    /// What is wrong with what it has said, while there is nothing else.
    pub(super) refused: Option<Arc<Problems>>,
    /// Whether there is a stream.
    pub(super) is_live: bool,
    /// Why there is none.
    pub(super) error: Option<String>,
}
