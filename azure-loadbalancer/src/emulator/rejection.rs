//! The error with which the resource manager rejects a request.

use http::StatusCode;
use serde_json::{Value, json};

/// An error response of the resource manager: a status, a code for programs, and a sentence for people.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{code}: {message}")]
pub struct Rejection {
    /// The status of the response.
    pub status: StatusCode,
    /// The code of the error: `ResourceNotFound`.
    pub code: String,
    /// The message.
    pub message: String,
    /// The code and message of a detail, where Azure has one.
    pub detail: Option<(String, String)>,
    /// The seconds of `Retry-After`.
    pub retry_after: Option<u32>,
}

impl Rejection {
    /// Creates a rejection without details and `Retry-After`.
    pub fn new(status: StatusCode, code: &str, message: impl Into<String>) -> Self {
        Self {
            status,
            code: code.to_owned(),
            message: message.into(),
            detail: None,
            retry_after: None,
        }
    }

    /// Adds a detail.
    #[must_use]
    pub fn with_detail(mut self, code: &str, message: impl Into<String>) -> Self {
        self.detail = Some((code.to_owned(), message.into()));
        self
    }

    /// Creates a 400.
    pub(super) fn bad(code: &str, message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, code, message)
    }

    /// Creates a 409.
    pub(super) fn conflict(code: &str, message: impl Into<String>) -> Self {
        Self::new(StatusCode::CONFLICT, code, message)
    }

    /// Creates a 404 of a resource.
    pub(super) fn not_found(id: &str) -> Self {
        let message = format!("The resource {id} was not found.");
        Self::new(StatusCode::NOT_FOUND, "ResourceNotFound", message)
    }

    /// Creates a 404 of a part of a resource.
    pub(super) fn part_not_found(id: &str) -> Self {
        let message = format!("Resource {id} not found.");
        Self::new(StatusCode::NOT_FOUND, "NotFound", message)
    }

    /// Creates a 400: an id in the body leads nowhere.
    pub(super) fn dangling(id: &str, from: &str) -> Self {
        let message = format!(
            "Resource {id} referenced by resource {from} was not found. Make sure that the referenced resource exists and \
             is in the same region."
        );
        Self::bad("InvalidResourceReference", message)
    }

    /// Creates a 412, as recorded from Azure.
    pub(super) fn etag_mismatch(id: &str) -> Self {
        let message = "Precondition failed.";
        Self::new(
            StatusCode::PRECONDITION_FAILED,
            "PreconditionFailed",
            message,
        )
        .with_detail(
            "PreconditionFailedEtagMismatch",
            format!("Etag provided in if-match header does not match etag of resource {id}."),
        )
    }

    /// Returns the body of the response.
    pub(super) fn body(&self) -> Value {
        let details: Vec<_> = self
            .detail
            .iter()
            .map(|(code, message)| json!({ "code": code, "message": message }))
            .collect();
        json!({ "error": { "code": self.code, "message": self.message, "details": details } })
    }
}
