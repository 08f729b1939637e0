//! The error of a call.

use std::error::Error;
use std::fmt;
use std::time::Duration;

use http::StatusCode;
use serde::Deserialize;

use super::token::TokenError;

/// A failed call of the resource manager.
///
/// The text names the call, and the resource manager's message. The chain of sources has the rest.
#[derive(Debug)]
pub struct ArmError(Box<ArmErrorInner>);

#[derive(Debug)]
struct ArmErrorInner {
    kind: ArmErrorKind,
    call: String,
    status: Option<StatusCode>,
    code: Option<String>,
    message: String,
    details: Vec<ArmErrorDetail>,
    retry_after: Option<Duration>,
    request_id: Option<String>,
    source: Option<Box<dyn Error + Send + Sync>>,
}

/// The kind of an [`ArmError`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ArmErrorKind {
    /// No token is available.
    Token,
    /// The resource manager is unreachable, or the connection ended before the response.
    Unreachable,
    /// The response, or the completion of a write, timed out.
    TimedOut,
    /// 401: the token is rejected.
    Unauthenticated,
    /// 403: the identity may not do this.
    Forbidden,
    /// 404: the resource, or its group, does not exist.
    NotFound,
    /// 409: another operation is in progress.
    Conflict,
    /// 412: the resource has changed since it was read.
    PreconditionFailed,
    /// 429: too many calls.
    Throttled,
    /// Any other status of 400 to 499: the request is invalid.
    Rejected,
    /// A status of 500 to 599, or 408.
    Server,
    /// An accepted write failed later, or was cancelled.
    Operation,
    /// The response has an unexpected form.
    Malformed,
}

/// A detail of an error.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[non_exhaustive]
pub struct ArmErrorDetail {
    /// The code, for programs.
    #[serde(default)]
    pub code: String,
    /// The message, for people.
    #[serde(default)]
    pub message: String,
}

/// The error body of the resource manager.
#[derive(Debug, Default, Deserialize)]
pub(super) struct ErrorBody {
    #[serde(default)]
    code: Option<String>,
    #[serde(default)]
    message: Option<String>,
    #[serde(default)]
    details: Option<Vec<ArmErrorDetail>>,
}

#[derive(Deserialize)]
struct Envelope {
    error: ErrorBody,
}

/// The maximum number of details of an error.
const MOST_DETAILS: usize = 16;
/// The maximum length of texts from a response, in characters.
const LONGEST_TEXT: usize = 2_000;

impl ArmError {
    pub(super) fn new(kind: ArmErrorKind, call: &str, message: impl Into<String>) -> Self {
        Self(Box::new(ArmErrorInner {
            kind,
            call: call.to_owned(),
            status: None,
            code: None,
            message: message.into(),
            details: Vec::new(),
            retry_after: None,
            request_id: None,
            source: None,
        }))
    }

    /// Creates the error of a response.
    pub(super) fn of_answer(call: &str, status: StatusCode, body: &[u8]) -> Self {
        let kind = match status.as_u16() {
            401 => ArmErrorKind::Unauthenticated,
            403 => ArmErrorKind::Forbidden,
            404 => ArmErrorKind::NotFound,
            408 => ArmErrorKind::Server,
            409 => ArmErrorKind::Conflict,
            412 => ArmErrorKind::PreconditionFailed,
            429 => ArmErrorKind::Throttled,
            400..=499 => ArmErrorKind::Rejected,
            500..=599 => ArmErrorKind::Server,
            _ => ArmErrorKind::Malformed,
        };
        // Gateways in front of the resource manager respond with HTML pages.
        let body = serde_json::from_slice(body).map(|envelope: Envelope| envelope.error);
        let mut error = Self::of_body(kind, call, body.unwrap_or_default());
        error.0.status = Some(status);
        error
    }

    pub(super) fn of_body(kind: ArmErrorKind, call: &str, body: ErrorBody) -> Self {
        let mut error = Self::new(
            kind,
            call,
            clean(body.message.as_deref().unwrap_or_default()),
        );
        error.0.code = body.code.map(|code| clean(&code));
        error.0.details = body.details.unwrap_or_default();
        error.0.details.truncate(MOST_DETAILS);
        for detail in &mut error.0.details {
            *detail = ArmErrorDetail {
                code: clean(&detail.code),
                message: clean(&detail.message),
            };
        }
        error
    }

    pub(super) fn with_retry_after(mut self, wait: Option<Duration>) -> Self {
        self.0.retry_after = wait;
        self
    }

    pub(super) fn with_request_id(mut self, id: Option<String>) -> Self {
        self.0.request_id = id;
        self
    }

    pub(super) fn with_source(mut self, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        self.0.source = Some(source.into());
        self
    }

    /// Adds the outcome of an accepted write to the message.
    pub(super) fn explain_operation(&mut self, ending: &str) {
        let said = std::mem::take(&mut self.0.message);
        self.0.message = if said.is_empty() {
            ending.to_owned()
        } else {
            format!("{ending}: {said}")
        };
    }

    /// Returns the kind of the error.
    pub fn kind(&self) -> ArmErrorKind {
        self.0.kind
    }

    /// Returns the call: `PUT loadBalancers/lb`.
    pub fn call(&self) -> &str {
        &self.0.call
    }

    /// Returns the status of the response, if there was one.
    pub fn status(&self) -> Option<StatusCode> {
        self.0.status
    }

    /// Returns the resource manager's error code: `PublicIPAddressCannotBeDeleted`.
    pub fn code(&self) -> Option<&str> {
        self.0.code.as_deref()
    }

    /// Returns the resource manager's message.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// Returns the details.
    pub fn details(&self) -> &[ArmErrorDetail] {
        &self.0.details
    }

    /// Returns true if the error or one of its details has this code.
    pub fn has_code(&self, code: &str) -> bool {
        self.code() == Some(code) || self.details().iter().any(|detail| detail.code == code)
    }

    /// Returns the time to wait before a retry, as requested by the resource manager.
    pub fn retry_after(&self) -> Option<Duration> {
        self.0.retry_after
    }

    /// Returns the id that the resource manager gave the request. Azure's support needs it.
    pub fn request_id(&self) -> Option<&str> {
        self.0.request_id.as_deref()
    }

    /// Returns true if the credentials are rejected: by the resource manager, or by the authority that gives tokens.
    #[cfg(feature = "discovery")]
    pub(crate) fn is_of_credentials(&self) -> bool {
        match self.0.kind {
            ArmErrorKind::Unauthenticated | ArmErrorKind::Forbidden => true,
            ArmErrorKind::Token => self.token_error().is_some_and(TokenError::is_rejected),
            _ => false,
        }
    }

    fn token_error(&self) -> Option<&TokenError> {
        self.0.source.as_deref()?.downcast_ref()
    }

    /// Returns true if a retry may succeed without any other change.
    pub fn is_retriable(&self) -> bool {
        match self.0.kind {
            ArmErrorKind::Unreachable
            | ArmErrorKind::TimedOut
            | ArmErrorKind::Throttled
            | ArmErrorKind::Server
            | ArmErrorKind::Conflict
            | ArmErrorKind::Operation
            | ArmErrorKind::PreconditionFailed => true,
            ArmErrorKind::Token => self.token_error().is_some_and(TokenError::is_transient),
            ArmErrorKind::Unauthenticated
            | ArmErrorKind::Forbidden
            | ArmErrorKind::NotFound
            | ArmErrorKind::Rejected
            | ArmErrorKind::Malformed => false,
        }
    }
}

/// Replaces control characters in a text from outside, and truncates it.
fn clean(text: &str) -> String {
    let text = text.chars().map(|c| if c.is_control() { ' ' } else { c });
    text.take(LONGEST_TEXT).collect()
}

impl fmt::Display for ArmError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ArmErrorInner {
            kind,
            call,
            status,
            code,
            message,
            details,
            request_id,
            ..
        } = &*self.0;
        write!(f, "{call}: ")?;
        match (status, code) {
            (Some(status), Some(code)) => write!(f, "{} {code}", status.as_u16())?,
            (Some(status), None) => write!(f, "{status}")?,
            (None, Some(code)) => write!(f, "{code}")?,
            (None, None) => {}
        }
        if !message.is_empty() {
            let separator = if status.is_some() || code.is_some() {
                ": "
            } else {
                ""
            };
            write!(f, "{separator}{message}")?;
        }
        for detail in details {
            write!(f, " [{}: {}]", detail.code, detail.message)?;
        }
        if let (Some(id), true) = (request_id, *kind != ArmErrorKind::NotFound) {
            write!(f, " (request {id})")?;
        }
        Ok(())
    }
}

impl Error for ArmError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.0.source.as_deref().map(|source| source as _)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_says_what_the_resource_manager_said() {
        let body = br#"{"error":{"code":"PreconditionFailed","message":"Precondition failed.","target":"x",
            "details":[{"code":"PreconditionFailedEtagMismatch","message":"Etag \u001b[31mdiffers","extra":1}],"innerError":{}}}"#;
        let error = ArmError::of_answer(
            "PUT loadBalancers/lb",
            StatusCode::PRECONDITION_FAILED,
            body,
        );
        assert_eq!(error.kind(), ArmErrorKind::PreconditionFailed);
        assert!(
            error.has_code("PreconditionFailedEtagMismatch")
                && error.has_code("PreconditionFailed")
        );
        assert_eq!(
            error.to_string(),
            "PUT loadBalancers/lb: 412 PreconditionFailed: Precondition failed. [PreconditionFailedEtagMismatch: Etag  \
             [31mdiffers]"
        );
    }

    #[test]
    fn an_error_does_not_fill_the_log() {
        let detail = r#"{"code":"c","message":"m"}"#;
        let details = vec![detail; 10_000].join(",");
        let body = format!(r#"{{"error":{{"code":"X","details":[{details}]}}}}"#);
        let error = ArmError::of_answer("GET x", StatusCode::BAD_REQUEST, body.as_bytes());
        assert_eq!(error.details().len(), MOST_DETAILS);
        assert!(error.to_string().len() < 500);
    }

    #[test]
    fn what_is_no_error_of_the_resource_manager_is_one_by_its_status() {
        for (status, body, kind, retriable) in [
            (502, "<html>", ArmErrorKind::Server, true),
            (408, "", ArmErrorKind::Server, true),
            (429, "[]", ArmErrorKind::Throttled, true),
            (400, r#"{"error":null}"#, ArmErrorKind::Rejected, false),
            (
                404,
                r#"{"error":{"code":null,"details":null}}"#,
                ArmErrorKind::NotFound,
                false,
            ),
            (302, "", ArmErrorKind::Malformed, false),
        ] {
            let status = StatusCode::from_u16(status).unwrap();
            let error = ArmError::of_answer("GET x", status, body.as_bytes());
            assert_eq!(
                (error.kind(), error.is_retriable()),
                (kind, retriable),
                "{status}"
            );
            assert_eq!(error.to_string(), format!("GET x: {status}"));
        }
    }
}
