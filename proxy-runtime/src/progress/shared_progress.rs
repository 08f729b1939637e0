//! The state that upload and download of the typed path share. The last of them to drop it ends the request at the
//! destination.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use http::StatusCode;
use tokio::time::Instant;

use crate::error::{ForwardError, ForwardErrorKind};
use crate::live::InFlight;
use crate::progress::Activity;
use crate::progress::{End, Stage};

/// The shared state of both directions of a request. The request counts as in flight while one of them holds it.
#[derive(Debug)]
pub(crate) struct SharedProgress {
    pub(crate) activity: Activity,
    pub(crate) upload: UploadStatus,
    in_flight: InFlight,
}

impl SharedProgress {
    /// Creates the state of a request that begins at `start`.
    pub(crate) fn new(in_flight: InFlight, activity_timeout: Duration, start: Instant) -> Self {
        Self {
            activity: Activity::new(activity_timeout, start),
            upload: UploadStatus::default(),
            in_flight,
        }
    }

    /// Ends the exchange at this time, whatever its progress.
    pub(crate) fn ending_at(mut self, end: Option<Instant>) -> Self {
        self.activity = self.activity.ending_at(end);
        self
    }

    /// The count of requests in flight at the destination.
    pub(crate) fn in_flight(&self) -> &InFlight {
        &self.in_flight
    }
}

/// The progress of the request's body.
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

    /// Records why the upload failed. The first reason counts.
    pub(crate) fn fail(&self, kind: ForwardErrorKind, status: StatusCode) {
        let _ = self.failure.set((kind.told(status), status));
    }

    /// The error of the upload, if it failed.
    pub(crate) fn failure(&self) -> Option<ForwardError> {
        let (kind, status) = *self.failure.get()?;
        Some(ForwardError::new(kind, status))
    }

    /// Returns the error of an exchange that ends before the client has a response: that of the upload, if it failed.
    #[cold]
    pub(crate) fn unanswered(&self, end: End) -> ForwardError {
        self.failure().unwrap_or_else(|| end.error(self.stage()))
    }

    /// Returns the kind of error of an exchange that ends after the response has begun.
    #[cold]
    pub(crate) fn cut(&self, end: End) -> ForwardErrorKind {
        match self.failure.get() {
            Some((kind, _)) if *kind == ForwardErrorKind::RequestCanceled => {
                ForwardErrorKind::ResponseBodyCanceled.because(kind.cause())
            }
            Some((kind, _)) => *kind,
            None => end.verdict(self.stage(), false).0,
        }
    }
}
