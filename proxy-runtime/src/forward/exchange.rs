//! What both directions of a request share while it is at a destination.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use http::StatusCode;
use tokio::time::Instant;

use super::error::{ForwardError, ForwardErrorKind};
use super::timeout::Activity;
use crate::state::InFlight;

/// What both directions of a request share while it is at a destination, where it is in flight for as long as one of
/// them holds this.
#[derive(Debug)]
pub(crate) struct Exchange {
    pub(crate) activity: Activity,
    pub(crate) upload: Upload,
    in_flight: InFlight,
}

impl Exchange {
    /// It begins at `start`, and nothing may happen for no longer than `activity_timeout`.
    pub(crate) fn new(in_flight: InFlight, activity_timeout: Duration, start: Instant) -> Self {
        Self {
            activity: Activity::new(activity_timeout, start),
            upload: Upload::default(),
            in_flight,
        }
    }

    /// The destination.
    pub(crate) fn in_flight(&self) -> &InFlight {
        &self.in_flight
    }
}

/// How far the request's body has come.
#[derive(Debug, Default)]
pub(crate) struct Upload {
    stage: AtomicU8,
    failure: OnceLock<(ForwardErrorKind, StatusCode)>,
}

/// Who the upload waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Stage {
    /// Nobody: there is no body, or all of it was handed over.
    Done,
    /// The client, for more bytes.
    Client,
    /// The destination, which does not take what there is.
    Destination,
    /// The destination, which has not said that it wants the body (`Expect: 100-continue`).
    Continue,
}

impl Upload {
    pub(crate) fn enter(&self, stage: Stage) {
        self.stage.store(stage as u8, Ordering::Relaxed);
    }

    pub(crate) fn stage(&self) -> Stage {
        match self.stage.load(Ordering::Relaxed) {
            1 => Stage::Client,
            2 => Stage::Destination,
            3 => Stage::Continue,
            _ => Stage::Done,
        }
    }

    /// Takes note of why it failed. The first reason counts.
    pub(crate) fn fail(&self, kind: ForwardErrorKind, status: StatusCode) {
        let _ = self.failure.set((kind, status));
    }

    /// Why it failed, if it did.
    pub(crate) fn failure(&self) -> Option<ForwardError> {
        let (kind, status) = *self.failure.get()?;
        Some(ForwardError::new(kind, status))
    }

    /// What it means that nothing has happened for too long.
    pub(crate) fn timed_out(&self) -> ForwardError {
        match self.stage() {
            Stage::Done | Stage::Continue => ForwardError::new(
                ForwardErrorKind::RequestTimedOut,
                StatusCode::GATEWAY_TIMEOUT,
            ),
            Stage::Client => ForwardError::new(
                ForwardErrorKind::RequestBodyClient,
                StatusCode::REQUEST_TIMEOUT,
            ),
            Stage::Destination => ForwardError::new(
                ForwardErrorKind::RequestBodyDestination,
                StatusCode::GATEWAY_TIMEOUT,
            ),
        }
    }
}
