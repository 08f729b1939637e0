//! The status for a client whose body ends with an error.

use std::error::Error as StdError;

use http::StatusCode;

#[cfg(feature = "server")]
use super::RequestBodyError;
use super::{ForwardError, ForwardErrorKind, TOO_LARGE};

/// Returns the status for a client whose body ends with this error: 400, unless it exceeded a limit of the server or
/// of the embedding program.
pub(crate) fn status_of(error: &(dyn StdError + 'static)) -> StatusCode {
    let mut cause = Some(error);
    // A layer may have wrapped the error.
    while let Some(error) = cause {
        if let Some(status) = rejection_of(error) {
            return status;
        }
        cause = error.source();
    }
    StatusCode::BAD_REQUEST
}

fn rejection_of(error: &(dyn StdError + 'static)) -> Option<StatusCode> {
    #[cfg(feature = "server")]
    if let Some(error) = error.downcast_ref::<RequestBodyError>() {
        return Some(error.status());
    }
    if error.is::<http_body_util::LengthLimitError>() {
        return Some(TOO_LARGE);
    }
    let error = error.downcast_ref::<ForwardError>()?;
    // A layer may limit the body by itself, with this status.
    let is_of_body =
        error.kind() == ForwardErrorKind::RequestBodyClient || error.status() == TOO_LARGE;
    is_of_body.then(|| error.status())
}
