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
    pub(super) error: Option<Lost>,
}

/// The reason why there is no stream.
#[derive(Debug, Clone)]
pub(super) struct Lost {
    pub(super) message: String,
    /// True if the control plane rejects the client: its credentials, or what they allow.
    pub(super) is_rejected: bool,
}

impl From<String> for Lost {
    fn from(message: String) -> Self {
        Self {
            message,
            is_rejected: false,
        }
    }
}

impl From<tonic::Status> for Lost {
    fn from(status: tonic::Status) -> Self {
        let code = status.code();
        Self {
            message: format!("{code}: {}", status.message()),
            is_rejected: matches!(
                code,
                tonic::Code::Unauthenticated | tonic::Code::PermissionDenied
            ),
        }
    }
}
