//! The requirements of a connection.

use std::sync::Arc;

use proxy_model::compiled::Upstream;

use super::{AnnouncedClient, Protocols};
use crate::live::{ClientKey, DestinationState};

/// The requirements of a connection: destination, settings and protocols.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ConnectionRequest<'a> {
    pub(crate) destination: &'a Arc<DestinationState>,
    /// The settings of the destination's cluster.
    pub(crate) upstream: &'a Upstream,
    /// The key of these settings.
    pub(crate) client: ClientKey,
    pub(crate) protocols: Protocols,
    /// The client to announce to the destination, if its cluster wants that.
    pub(crate) announced: Option<AnnouncedClient>,
    /// True if the connection must be a new one.
    pub(crate) fresh: bool,
    /// True if the request cannot be retried. A pooled HTTP/1.1 connection is then checked with a system call before
    /// use.
    pub(crate) careful: bool,
}
