//! The pick of a destination for a request.

use http::StatusCode;
use log_sink::Seldom;
use proxy_model::RequestHead;
use proxy_model::compiled::{Cluster, DestinationIndex};
use tracing::error;

use crate::affinity::KeyFailure;
use crate::cluster::{ClusterState, Picked, Unpicked};
use crate::contain::{Panicked, contained_call};
use crate::error::{Cause, ForwardError, ForwardErrorKind};
use crate::live::Ineligible;
use crate::observe::{LOG_PAUSE, targets};

/// Picks the destination for a request to a cluster with this state.
///
/// # Errors
///
/// None is available, the policy wants none, or the affinity failure policy rejects the request. Or the policy
/// belongs to the program and panicked, which ends this request only.
#[inline]
pub(crate) fn pick<H: RequestHead>(
    state: &ClusterState,
    cluster: &Cluster,
    head: &H,
) -> Result<Picked, ForwardError> {
    match contained_call(|| state.pick(cluster, head)) {
        Ok(Ok(picked)) => Ok(picked),
        Ok(Err(Unpicked::None)) => Err(none_available(state, cluster)),
        Ok(Err(Unpicked::Rejected(failure, status))) => Err(rejected(failure, status)),
        Err(panic) => Err(panicked(&panic)),
    }
}

/// Another destination than those that failed, picked as if they were unhealthy: what fails fast has
/// little to do, so policies that look at the load would prefer it, and it may be the last of its tier.
/// `None` if there is no other.
#[cold]
pub(super) fn pick_other<H: RequestHead>(
    state: &ClusterState,
    cluster: &Cluster,
    head: &H,
    failed: &[DestinationIndex],
) -> Option<Picked> {
    contained_call(|| state.pick_other(cluster, head, failed))
        .map_err(|panic| panicked(&panic))
        .ok()?
}

#[cold]
fn none_available(state: &ClusterState, cluster: &Cluster) -> ForwardError {
    state.report_none_available();
    let kind = ForwardErrorKind::NoAvailableDestinations.because(lack_of(state, cluster));
    ForwardError::new(kind, StatusCode::SERVICE_UNAVAILABLE)
}

/// The cause of having no destination.
#[cold]
fn lack_of(state: &ClusterState, cluster: &Cluster) -> Cause {
    let mut faults = state.destinations().iter().map(|d| d.fault(cluster));
    match faults.find_map(|fault| fault) {
        Some(Ineligible::Failing) => Cause::AllEjected,
        Some(_) => Cause::AllUnhealthy,
        None => Cause::NoDestination,
    }
}

#[cold]
fn rejected(failure: KeyFailure, status: StatusCode) -> ForwardError {
    let kind = ForwardErrorKind::NoAvailableDestinations.because(Cause::AffinityRejected);
    ForwardError::new(kind, status).with_source(failure.to_string())
}

#[cold]
fn panicked(panic: &Panicked) -> ForwardError {
    static SELDOM: Seldom = Seldom::new(LOG_PAUSE);
    if let Some(left_out) = SELDOM.pass() {
        error!(target: targets::REQUEST, panic = panic.0, left_out, "a load balancing or affinity policy panicked");
    }
    ForwardError::new(
        ForwardErrorKind::Extension,
        StatusCode::INTERNAL_SERVER_ERROR,
    )
}
