//! What a connection is wanted for.

use std::sync::Arc;

use proxy_model::compiled::Upstream;

use super::Protocols;
use crate::live::{ClientKey, DestinationState};

/// What a connection is wanted for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ConnectionRequest<'a> {
    pub(crate) destination: &'a Arc<DestinationState>,
    /// The settings of the destination's cluster.
    pub(crate) upstream: &'a Upstream,
    /// Names these settings.
    pub(crate) client: ClientKey,
    pub(crate) protocols: Protocols,
    /// Whether it must be a connection that is made from now on.
    pub(crate) fresh: bool,
    /// Whether the request cannot be repeated, so that an idle connection of HTTP/1.1 is looked at once more before it is used.
    pub(crate) careful: bool,
}
