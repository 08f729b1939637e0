//! Routes that are known before a request is forwarded.

use std::sync::Arc;

use proxy_model::compiled::RouteIndex;

use crate::state::Generation;

/// The route of a request, found when its head was read by the server of this crate, on HTTP/1.1. There the framing of the
/// request was checked, and it does not ask for another protocol.
#[derive(Clone, Debug)]
pub(crate) struct FoundRoute {
    pub(crate) generation: Arc<Generation>,
    pub(crate) index: RouteIndex,
}
