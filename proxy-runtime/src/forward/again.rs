//! Requests that are sent again.

use std::sync::Arc;

use http::Request;

use super::request::{BodyKind, OutgoingHead};
use crate::error::ForwardError;
use crate::progress::Continuation;
use crate::progress::OutgoingBody;
use crate::retry::{Came, Failed, Over, Sent};

/// Why there is no response.
pub(super) struct Failure {
    pub(super) error: ForwardError,
    /// The request, if all of it is left.
    pub(super) whole: Option<Box<Request<OutgoingBody>>>,
    pub(super) sent: Sent,
    pub(super) came: Came,
}

impl Failure {
    /// What there is to know of the attempt that has failed.
    pub(super) fn attempt(&self, over: Over, is_idempotent: bool, body_kind: BodyKind) -> Failed {
        Failed {
            over,
            sent: self.sent,
            came: self.came,
            is_idempotent,
            // A head can be made again.
            is_whole: self.whole.is_some() || body_kind == BodyKind::Empty,
        }
    }
}

impl From<ForwardError> for Failure {
    fn from(error: ForwardError) -> Self {
        Self {
            error,
            whole: None,
            sent: Sent::Something,
            came: Came::Something,
        }
    }
}

/// A request that is to be sent over another connection.
pub(super) struct Again {
    /// As it was to be sent; without it, it has no body.
    pub(super) whole: Option<Box<Request<OutgoingBody>>>,
    pub(super) body_kind: BodyKind,
}

impl Again {
    /// The request, whose head stays as it is if it `fits` the new connection. Else, or if it is not there any more, it is made
    /// anew by `make` for the version that the connection speaks: hardly any request needs it, so none keeps a copy.
    ///
    /// # Errors
    ///
    /// It cannot be said in that version.
    pub(super) fn into_request(
        self,
        fits: bool,
        is_http2: bool,
        make: impl FnOnce() -> Result<OutgoingHead, ForwardError>,
    ) -> Result<Request<OutgoingBody>, ForwardError> {
        let whole = match self.whole {
            Some(whole) if fits => return Ok(*whole),
            whole => whole,
        };
        let (continuation, body) = match whole {
            None => (None, OutgoingBody::empty()),
            Some(whole) => {
                let continuation = whole.extensions().get::<Arc<Continuation>>().cloned();
                (continuation, whole.into_body())
            }
        };
        let mut request = make()?.into_request(body, self.body_kind, is_http2)?;
        if let Some(continuation) = continuation {
            request.extensions_mut().insert(continuation);
        }
        Ok(request)
    }
}
