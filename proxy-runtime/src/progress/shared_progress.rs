//! What upload and download of the typed path know of each other: both hold it, and the last of them to drop it ends the request
//! at the destination.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use http::StatusCode;
use tokio::time::Instant;

use crate::error::{ForwardError, ForwardErrorKind};
use crate::live::InFlight;
use crate::progress::Activity;
use crate::progress::{End, Stage};

/// What both directions of a request share while it is at a destination, where it is in flight for as long as one of
/// them holds this.
#[derive(Debug)]
pub(crate) struct SharedProgress {
    pub(crate) activity: Activity,
    pub(crate) upload: UploadStatus,
    in_flight: InFlight,
}

impl SharedProgress {
    /// It begins at `start`, and nothing may happen for no longer than `activity_timeout`.
    pub(crate) fn new(in_flight: InFlight, activity_timeout: Duration, start: Instant) -> Self {
        Self {
            activity: Activity::new(activity_timeout, start),
            upload: UploadStatus::default(),
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
pub(crate) struct UploadStatus {
    stage: AtomicU8,
    failure: OnceLock<(ForwardErrorKind, StatusCode)>,
}

impl UploadStatus {
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

    /// What it means that the exchange ends like that, while the client had no response. If the upload has failed, that is the
    /// reason.
    #[cold]
    pub(crate) fn unanswered(&self, end: End) -> ForwardError {
        self.failure().unwrap_or_else(|| end.error(self.stage()))
    }

    /// The same, now that it had one.
    #[cold]
    pub(crate) fn cut(&self, end: End) -> ForwardErrorKind {
        match self.failure.get() {
            Some((ForwardErrorKind::RequestCanceled, _)) => ForwardErrorKind::ResponseBodyCanceled,
            Some((kind, _)) => *kind,
            None => end.verdict(self.stage(), false).0,
        }
    }
}
