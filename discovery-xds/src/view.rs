//! The view of a session for its readers.

use std::sync::Arc;

use discovery_core::Discovery;
use proxy_model::Problems;

/// The state of a session.
#[derive(Debug, Clone, Default)]
pub(super) struct View {
    /// The configuration of the control plane. `None` if it has not been sent yet.
    pub(super) discovery: Option<Arc<Discovery>>,
    /// The problems of the control plane's resources, while there is nothing else.
    pub(super) rejected: Option<Arc<Problems>>,
    /// True if there is a stream.
    pub(super) is_live: bool,
    /// The reason why there is no stream.
    pub(super) error: Option<String>,
}
