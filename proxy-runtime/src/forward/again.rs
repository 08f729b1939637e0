//! Requests that are sent a second time.

use http::Request;

use super::error::ForwardError;
use super::outgoing_body::OutgoingBody;
use super::request::{BodyKind, OutgoingHead};

/// Why there is no response.
pub(super) struct Failure {
    pub(super) error: ForwardError,
    /// The request, if no byte of it was sent, or if it can do no harm the second time.
    pub(super) unsent: Option<Box<Request<OutgoingBody>>>,
    /// Whether the destination says that it has not looked at the request.
    pub(super) unprocessed: bool,
}

impl Failure {
    /// What to send again, if that can do no harm.
    pub(super) fn again(self, body_kind: BodyKind) -> Result<Again, ForwardError> {
        let is_bodiless = body_kind == BodyKind::Empty;
        if self.unsent.is_some() || (self.unprocessed && is_bodiless) {
            return Ok(Again {
                unsent: self.unsent,
                body_kind,
            });
        }
        Err(self.error)
    }
}

impl From<ForwardError> for Failure {
    fn from(error: ForwardError) -> Self {
        Self {
            error,
            unsent: None,
            unprocessed: false,
        }
    }
}

/// A request that is to be sent over another connection.
pub(super) struct Again {
    /// As it was to be sent; without it, it has no body.
    unsent: Option<Box<Request<OutgoingBody>>>,
    body_kind: BodyKind,
}

impl Again {
    /// The request, which was made for one version of HTTP, for the one that the new connection speaks. What is not there any
    /// more, or is of the other version, is made anew by `make`: hardly any request needs it, so none keeps a copy.
    ///
    /// # Errors
    ///
    /// It cannot be said in that version.
    pub(super) fn into_request(
        self,
        was_http2: bool,
        is_http2: bool,
        make: impl FnOnce() -> Result<OutgoingHead, ForwardError>,
    ) -> Result<Request<OutgoingBody>, ForwardError> {
        match self.unsent {
            Some(unsent) if was_http2 == is_http2 => Ok(*unsent),
            unsent => {
                let body = unsent.map_or_else(OutgoingBody::empty, |unsent| unsent.into_body());
                make()?.into_request(body, self.body_kind, is_http2)
            }
        }
    }
}
