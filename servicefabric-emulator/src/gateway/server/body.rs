use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::StatusCode;
use http::header::CONTENT_LENGTH;
use http::request::Parts;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::body::{Body, Frame, Incoming, SizeHint};
use tokio::time::timeout;

use super::activity::Activity;
use super::connection::ClosedByFault;
use crate::cluster::ErrorCode;
use crate::gateway::wire::ApiError;

/// `HttpGateway/MaxEntityBodySize`.
const MAX_BODY: usize = 4 * 1024 * 1024;
/// The maximum size of an uploaded file.
const MAX_UPLOAD: u64 = 4 << 30;
/// The time limit for receiving a file.
const READ_UPLOAD: Duration = Duration::from_secs(600);
/// The time limit for receiving a body.
const READ: Duration = Duration::from_secs(60);

/// Reads a whole body.
///
/// # Errors
///
/// 413 beyond 4 MiB, 408 after a minute, 400 when the client ends early or its framing is broken.
pub(super) async fn read(head: &Parts, body: Incoming) -> Result<Bytes, ApiError> {
    let declared = head
        .headers
        .get(CONTENT_LENGTH)
        .and_then(|value| value.to_str().ok())
        .and_then(|value| value.parse::<u64>().ok());
    // A declared length is rejected before anything is read.
    if declared.is_some_and(|length| length > MAX_BODY as u64) {
        return Err(too_large());
    }
    let activity = head.extensions.get::<Arc<Activity>>();
    let _reading = activity.map(|activity| activity.reading());
    match timeout(READ, Limited::new(body, MAX_BODY).collect()).await {
        Ok(Ok(whole)) => Ok(whole.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => Err(too_large()),
        Ok(Err(error)) => Err(ApiError::invalid(format!(
            "the body cannot be read: {error}"
        ))),
        Err(_) => Err(ApiError {
            status: StatusCode::REQUEST_TIMEOUT,
            ..ApiError::new(ErrorCode::Timeout, "the body took longer than a minute")
        }),
    }
}

/// A body that was read, or its size.
#[derive(Debug, Default)]
pub(super) struct Content {
    /// The content. Empty if it was longer than the limit.
    pub(super) kept: Bytes,
    /// The size in bytes.
    pub(super) size: u64,
}

impl From<Bytes> for Content {
    fn from(kept: Bytes) -> Self {
        let size = kept.len() as u64;
        Self { kept, size }
    }
}

/// Reads a file of any size. Its content is kept up to 4 MiB; for a longer one only the size is known
/// afterwards.
///
/// # Errors
///
/// 413 beyond 4 GiB, 408 after ten minutes, 400 when the client ends early or its framing is broken.
pub(super) async fn upload(head: &Parts, mut body: Incoming) -> Result<Content, ApiError> {
    let activity = head.extensions.get::<Arc<Activity>>();
    let _reading = activity.map(|activity| activity.reading());
    let whole = async {
        let (mut kept, mut size) = (Vec::new(), 0_u64);
        while let Some(frame) = body.frame().await {
            let frame = frame
                .map_err(|error| ApiError::invalid(format!("the body cannot be read: {error}")))?;
            let Ok(data) = frame.into_data() else {
                continue;
            };
            size += data.len() as u64;
            if size > MAX_UPLOAD {
                return Err(ApiError::new(
                    ErrorCode::ValueTooLarge,
                    format!("the file is larger than {MAX_UPLOAD} bytes"),
                ));
            }
            // Only the size of a large file is used.
            match size > MAX_BODY as u64 {
                true => kept = Vec::new(),
                false => kept.extend_from_slice(&data),
            }
        }
        let kept = kept.into();
        Ok(Content { kept, size })
    };
    match timeout(READ_UPLOAD, whole).await {
        Ok(content) => content,
        Err(_) => Err(ApiError {
            status: StatusCode::REQUEST_TIMEOUT,
            ..ApiError::new(ErrorCode::Timeout, "the file took longer than ten minutes")
        }),
    }
}

fn too_large() -> ApiError {
    ApiError::new(
        ErrorCode::ValueTooLarge,
        format!("the body is larger than {MAX_BODY} bytes"),
    )
}

/// The body of a response: whole, or truncated on purpose.
#[derive(Debug)]
pub(crate) struct Reply {
    data: Option<Bytes>,
    missing: u64,
    /// True once the sent part has had a chance to leave before the failure.
    paused: bool,
}

impl Reply {
    /// Creates a complete body.
    pub(crate) fn whole(data: Bytes) -> Self {
        Self {
            data: Some(data).filter(|data| !data.is_empty()),
            missing: 0,
            paused: false,
        }
    }

    /// Creates a body that announces its full length, sends half, and fails, which closes the connection.
    pub(super) fn half(data: &Bytes) -> Self {
        let half = data.len() / 2;
        Self {
            data: Some(data.slice(..half)).filter(|data| !data.is_empty()),
            // Even a response without a body fails.
            missing: (data.len() - half).max(1) as u64,
            paused: false,
        }
    }
}

impl Body for Reply {
    type Data = Bytes;
    type Error = ClosedByFault;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, ClosedByFault>>> {
        if self.data.is_none() && self.missing > 0 && !self.paused {
            // A server flushes when a body makes it wait, but discards its buffer when a body fails.
            self.paused = true;
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        Poll::Ready(match self.data.take() {
            Some(data) => Some(Ok(Frame::data(data))),
            None if self.missing > 0 => Some(Err(ClosedByFault)),
            None => None,
        })
    }

    fn is_end_stream(&self) -> bool {
        self.data.is_none() && self.missing == 0
    }

    fn size_hint(&self) -> SizeHint {
        let here = self.data.as_ref().map_or(0, Bytes::len) as u64;
        SizeHint::with_exact(here + self.missing)
    }
}
