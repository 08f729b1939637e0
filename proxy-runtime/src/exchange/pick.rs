//! Who takes a request.

use http::StatusCode;
use proxy_model::RequestHead;
use proxy_model::compiled::Cluster;
use tracing::debug;

use crate::contain::{Panicked, contained_call};
use crate::forward::{ForwardError, ForwardErrorKind};
use crate::observe::targets;
use crate::state::{ClusterState, Picked};

/// How often a destination other than the one that failed is asked for. Policies that pick by chance or by load find one
/// soon; `FirstAlphabetical` wants no other.
const PICKS: usize = 4;

/// The destination for a request to a cluster, whose state this is.
///
/// # Errors
///
/// None is available, or the policy wants none. Or it is the program's own and panicked, which ends one request and no more.
#[inline]
pub(crate) fn pick<H: RequestHead>(
    state: &ClusterState,
    cluster: &Cluster,
    head: &H,
) -> Result<Picked, ForwardError> {
    match contained_call(|| state.pick(cluster, head)) {
        Ok(Some(picked)) => Ok(picked),
        Ok(None) => Err(none_available()),
        Err(panic) => Err(panicked(&panic)),
    }
}

/// Another destination than one to which no connection could be opened for this reason, which stays in flight meanwhile, so
/// that policies that look at the load prefer another. `None` if there is none, or if something was sent.
pub(crate) fn pick_other<H: RequestHead>(
    state: &ClusterState,
    cluster: &Cluster,
    head: &H,
    failed: &Picked,
    error: &ForwardError,
) -> Option<Picked> {
    if !error.is_unsent() {
        return None;
    }
    (0..PICKS)
        .map_while(|_| pick(state, cluster, head).ok())
        .find(|other| other.index != failed.index)
}

#[cold]
fn none_available() -> ForwardError {
    ForwardError::new(
        ForwardErrorKind::NoAvailableDestinations,
        StatusCode::SERVICE_UNAVAILABLE,
    )
}

#[cold]
fn panicked(panic: &Panicked) -> ForwardError {
    debug!(target: targets::REQUEST, panic = panic.0, "a load balancing policy panicked");
    ForwardError::new(
        ForwardErrorKind::Extension,
        StatusCode::INTERNAL_SERVER_ERROR,
    )
}
