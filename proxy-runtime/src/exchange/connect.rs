//! A connection to a destination, and another one in the place of one that failed. Every path gets its connections
//! here.

use std::error::Error as StdError;
use std::sync::Arc;
use std::time::Duration;

use http::StatusCode;
use proxy_model::RequestHead;
use proxy_model::compiled::{Cluster, DestinationIndex};
use tokio::time::Instant;

use super::pick::pick_other;
use crate::cluster::{ClusterState, Picked};
use crate::error::{Cause, ForwardError, ForwardErrorKind};
use crate::live::DestinationState;
use crate::progress::within;
use crate::retry::{Attempts, Failed, RetryDecision};
use crate::upstream::{
    AnnouncedClient, ConnectError, ConnectionRequest, Lease, Protocols, UpstreamPool, protocol,
};

/// The facts about a request that matter for its connection.
#[derive(Clone, Copy)]
pub(crate) struct ConnectContext<'a> {
    pub(crate) cluster: &'a Cluster,
    pub(crate) state: &'a ClusterState,
    pub(crate) pool: &'a UpstreamPool,
    /// The HTTP versions over which the requested protocol switch is possible, if the client requested one.
    pub(crate) switch: Option<Protocols>,
    /// True if the request cannot be sent a second time, so that an idle connection is looked at once more before it
    /// is used.
    pub(crate) is_careful: bool,
    /// True if the request may go to no other destination than the one that was picked.
    pub(crate) is_bound: bool,
    /// The time by which the response must have begun.
    pub(crate) due: Option<Instant>,
    /// The client to announce to the destination, if its cluster wants that.
    pub(crate) announced: Option<AnnouncedClient>,
}

/// The counter of the places that a request goes to.
pub(crate) trait Ledger<'a> {
    /// The destination that it was counted for has failed.
    fn failed(&mut self, kind: ForwardErrorKind);

    /// Notes the destination that the request goes to now.
    fn moved_to(&mut self, destination: &'a Arc<DestinationState>);
}

/// The place of the next attempt.
#[derive(Debug)]
pub(crate) enum Next {
    /// A new connection to the same destination.
    Same,
    Other(Picked),
}

impl<'a> ConnectContext<'a> {
    /// Returns the request to the pool for a destination.
    ///
    /// # Errors
    ///
    /// The version that the cluster demands is not spoken.
    #[inline]
    pub(crate) fn wanted(
        &self,
        index: DestinationIndex,
    ) -> Result<ConnectionRequest<'a>, ForwardError> {
        let upstream = self.cluster.upstream();
        let protocols = match self.switch {
            // The cluster's version does not matter here: only some versions can carry the switch.
            Some(protocols) => protocols,
            None => {
                let destination = &self.cluster.destinations()[index.0 as usize];
                let protocols = protocol::for_request(destination.address().scheme(), upstream);
                protocols.map_err(unspoken)?
            }
        };
        Ok(self.wanted_in(index, protocols))
    }

    /// The same over these protocols.
    #[inline]
    pub(crate) fn wanted_in(
        &self,
        index: DestinationIndex,
        protocols: Protocols,
    ) -> ConnectionRequest<'a> {
        ConnectionRequest {
            destination: self.state.destination(index),
            upstream: self.cluster.upstream(),
            client: self.state.client(),
            protocols,
            announced: self.announced,
            fresh: false,
            careful: self.is_careful,
        }
    }

    /// A connection to a destination.
    pub(crate) async fn acquire(&self, index: DestinationIndex) -> Result<Lease, ForwardError> {
        let wanted = self.wanted(index)?;
        let acquired = self.pool.acquire(wanted, self.due).await;
        let preparing = self.prepared(acquired.map_err(no_connection)?);
        within(self.due, preparing).await.map_err(unconnected)
    }

    /// A connection to the picked destination, or to another one if none can be opened there.
    pub(crate) async fn connect<H: RequestHead>(
        &self,
        mut picked: Picked,
        head: &H,
        attempts: &mut Attempts,
        ledger: &mut impl Ledger<'a>,
    ) -> Result<(Picked, Lease), ForwardError> {
        loop {
            match self.acquire(picked.index).await {
                Ok(lease) => return Ok((picked, lease)),
                Err(error) => {
                    picked = self.elsewhere(picked.index, error, head, attempts, ledger)?;
                }
            }
        }
    }

    /// Picks another destination after a connection to the first one failed with this error.
    ///
    /// # Errors
    ///
    /// The reason, if there is no other destination, or if it would not help.
    pub(crate) fn elsewhere<H: RequestHead>(
        &self,
        index: DestinationIndex,
        error: ForwardError,
        head: &H,
        attempts: &mut Attempts,
        ledger: &mut impl Ledger<'a>,
    ) -> Result<Picked, ForwardError> {
        // A destination may have processed what was sent.
        if !error.is_unsent()
            || Failed::UNCONNECTED.verdict(attempts, self.left()) == RetryDecision::GiveUp
        {
            return Err(error);
        }
        let other = self.other(index, error.kind(), head, attempts, ledger);
        other.ok_or(error)
    }

    /// Returns the next place of a request whose attempt at a destination has failed. `None` if it is not sent again.
    pub(crate) fn next<H: RequestHead>(
        &self,
        index: DestinationIndex,
        failed: Failed,
        head: &H,
        attempts: &mut Attempts,
        ledger: &mut impl Ledger<'a>,
    ) -> Option<Next> {
        match failed.verdict(attempts, self.left()) {
            RetryDecision::GiveUp => None,
            RetryDecision::Same => {
                attempts.stay();
                Some(Next::Same)
            }
            RetryDecision::Other => {
                let kind = ForwardErrorKind::Request;
                let other = self.other(index, kind, head, attempts, ledger);
                other.map(Next::Other)
            }
        }
    }

    /// Returns the connection for the next attempt after one to the destination `index` failed, which the request
    /// was using since `since`. The result includes the picked destination, if it is not the same.
    pub(crate) async fn reconnect<H: RequestHead>(
        &self,
        next: Next,
        index: DestinationIndex,
        (failed, since): (Lease, Instant),
        head: &H,
        attempts: &mut Attempts,
        ledger: &mut impl Ledger<'a>,
    ) -> Result<(Option<Picked>, Lease), ForwardError> {
        let picked = match next {
            Next::Other(picked) => {
                // Closed before the wait for another connection, which may be long.
                drop(failed);
                picked
            }
            Next::Same => match self.replace(index, failed, since).await {
                Ok(lease) => return Ok((None, lease)),
                Err(error) => self.elsewhere(index, error, head, attempts, ledger)?,
            },
        };
        let (picked, lease) = self.connect(picked, head, attempts, ledger).await?;
        Ok((Some(picked), lease))
    }

    /// Another connection to the same destination.
    async fn replace(
        &self,
        index: DestinationIndex,
        failed: Lease,
        since: Instant,
    ) -> Result<Lease, ForwardError> {
        let wanted = ConnectionRequest {
            // The destination may have closed its other idle connections as well.
            fresh: true,
            ..self.wanted(index)?
        };
        let replaced = self.pool.replace(failed, since, wanted, self.due).await;
        let preparing = self.prepared(replaced.map_err(no_connection)?);
        within(self.due, preparing).await.map_err(unconnected)
    }

    /// Returns a connection over which the requested protocol can be used.
    async fn prepared(&self, lease: Lease) -> Result<Lease, ForwardError> {
        if self.switch.is_some() {
            lease.prepare_connect().await.map_err(no_connection)?;
        }
        Ok(lease)
    }

    fn other<H: RequestHead>(
        &self,
        index: DestinationIndex,
        kind: ForwardErrorKind,
        head: &H,
        attempts: &mut Attempts,
        ledger: &mut impl Ledger<'a>,
    ) -> Option<Picked> {
        if self.is_bound {
            return None;
        }
        // Before the pick, which leaves out all destinations that failed.
        attempts.failed(index);
        let other = pick_other(self.state, self.cluster, head, attempts.tried())?;
        attempts.leave();
        // Before the move, so that the failure counts for the old destination.
        ledger.failed(kind);
        ledger.moved_to(self.state.destination(other.index));
        Some(other)
    }

    /// The time until the response must have begun.
    fn left(&self) -> Option<Duration> {
        let due = self.due?;
        Some(due.saturating_duration_since(Instant::now()))
    }
}

/// Returns the error of a request that got no connection by its time limit.
#[cold]
fn unconnected(error: ForwardError) -> ForwardError {
    match error.kind() == ForwardErrorKind::RequestTimedOut {
        true => error.because(Cause::ConnectTimeout),
        false => error,
    }
}

#[cold]
fn unspoken(reason: &'static str) -> ForwardError {
    ForwardError::new(ForwardErrorKind::RequestCreation, StatusCode::BAD_GATEWAY)
        .with_source(reason)
}

/// Returns the error of a request without a connection. Other destinations may have one, unless it took
/// too long to find out. They may also if too many requests wait already: each destination has its own
/// limit, and trying it costs nothing, so a cluster never gets more than it allows.
fn no_connection(error: ConnectError) -> ForwardError {
    let (kind, status) = match &error {
        ConnectError::TimedOut | ConnectError::Queued => (
            ForwardErrorKind::RequestTimedOut,
            StatusCode::GATEWAY_TIMEOUT,
        ),
        ConnectError::Saturated => (
            ForwardErrorKind::NoAvailableDestinations,
            StatusCode::SERVICE_UNAVAILABLE,
        ),
        ConnectError::Unsupported(_) => {
            (ForwardErrorKind::RequestCreation, StatusCode::BAD_GATEWAY)
        }
        _ => (ForwardErrorKind::Request, StatusCode::BAD_GATEWAY),
    };
    let mut failed = ForwardError::new(kind, status).because(error.cause());
    if kind == ForwardErrorKind::Request || matches!(error, ConnectError::Saturated) {
        failed = failed.unsent();
    }
    failed.with_source(Box::new(error) as Box<dyn StdError + Send + Sync>)
}
