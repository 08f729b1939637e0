//! Routes that the server resolves before forwarding.

use std::sync::Arc;

use proxy_model::compiled::RouteIndex;

use crate::state::Generation;

/// The route of a request, resolved by the server of this crate when it read the head over
/// HTTP/1.1. The framing of the request is valid, and it does not upgrade to another protocol.
#[derive(Clone, Debug)]
pub(crate) struct FoundRoute {
    pub(crate) generation: Arc<Generation>,
    pub(crate) index: RouteIndex,
}
