//! The request body of a caller of the tower service, in frames.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::HeaderMap;
use http_body::Body;

use super::exchange::failure::UploadFailure;
use super::exchange::frames_upload::Frames;
use crate::error::status_of;
use crate::layer::ProxyRequestBody;

/// The frames of a caller's request body.
pub(super) struct BodyFrames {
    body: ProxyRequestBody,
    trailers: Option<HeaderMap>,
}

impl BodyFrames {
    /// Returns `None` for a body that is known to be empty.
    pub(super) fn of(body: ProxyRequestBody) -> Option<Self> {
        (!body.is_end_stream()).then_some(Self {
            body,
            trailers: None,
        })
    }
}

impl Frames for BodyFrames {
    fn poll_data(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, UploadFailure>>> {
        // Trailers end the data, and wait for `poll_trailers`.
        if self.trailers.is_some() {
            return Poll::Ready(None);
        }
        Poll::Ready(match ready!(Pin::new(&mut self.body).poll_frame(cx)) {
            Some(Ok(frame)) => match frame.into_data() {
                Ok(data) => Some(Ok(data)),
                Err(other) => {
                    // `http_body` has no third kind of frame.
                    self.trailers = Some(other.into_trailers().unwrap_or_default());
                    None
                }
            },
            Some(Err(error)) => Some(Err(UploadFailure::client(status_of(&*error)))),
            None => None,
        })
    }

    fn poll_trailers(
        &mut self,
        _: &mut Context<'_>,
    ) -> Poll<Result<Option<HeaderMap>, UploadFailure>> {
        Poll::Ready(Ok(self.trailers.take()))
    }

    fn has_ended(&self) -> bool {
        self.trailers.is_none() && self.body.is_end_stream()
    }

    // The body of a caller has no window to open.
    fn taken(&mut self, _: usize) {}
}
