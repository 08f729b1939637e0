//! What a session shows to those who ask.

use std::sync::Arc;

use discovery_core::Discovery;

/// How a session is doing.
#[derive(Debug, Clone, Default)]
pub(super) struct View {
    /// What the control plane wants to be served; `None`: it has not said so yet.
    pub(super) discovery: Option<Arc<Discovery>>,
    /// Whether there is a stream.
    pub(super) is_live: bool,
    /// Why there is none.
    pub(super) error: Option<String>,
}
