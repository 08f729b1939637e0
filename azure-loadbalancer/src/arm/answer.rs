//! A response of the resource manager.

use std::time::Duration;

use bytes::Bytes;
use http::header::RETRY_AFTER;
use http::{HeaderMap, Response, StatusCode};
use serde::de::DeserializeOwned;

use super::error::{ArmError, ArmErrorKind};

/// The maximum wait of a `Retry-After`: a day.
const LONGEST: Duration = Duration::from_secs(24 * 3_600);
/// The maximum length of a request id. Longer ones are ignored.
const LONGEST_ID: usize = 128;

#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: StatusCode,
    headers: HeaderMap,
    pub(super) body: Bytes,
}

impl Answer {
    pub(super) fn new(response: Response<Bytes>) -> Self {
        let (head, body) = response.into_parts();
        Self {
            status: head.status,
            headers: head.headers,
            body,
        }
    }

    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// Returns the seconds of `Retry-After`. The resource manager writes no dates there.
    pub(super) fn retry_after(&self) -> Option<Duration> {
        let text = self.header(RETRY_AFTER.as_str())?.trim();
        let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        // Digits that overflow exceed a day as well.
        let seconds = digits.then(|| text.parse().unwrap_or(u64::MAX))?;
        Some(Duration::from_secs(seconds).min(LONGEST))
    }

    pub(super) fn request_id(&self) -> Option<String> {
        let id = self
            .header("x-ms-request-id")
            .or_else(|| self.header("x-ms-correlation-request-id"))?;
        let is_id = id.len() <= LONGEST_ID && id.bytes().all(|byte| byte.is_ascii_graphic());
        is_id.then(|| id.to_owned())
    }

    /// Returns the response as an error.
    pub(super) fn error(&self, call: &str) -> ArmError {
        ArmError::of_answer(call, self.status, &self.body)
            .with_retry_after(self.retry_after())
            .with_request_id(self.request_id())
    }

    /// Deserialises the body.
    pub(super) fn read<T: DeserializeOwned>(&self, call: &str) -> Result<T, ArmError> {
        serde_json::from_slice(&self.body).map_err(|error| {
            ArmError::new(
                ArmErrorKind::Malformed,
                call,
                "the response has an unexpected form",
            )
            .with_request_id(self.request_id())
            .with_source(error)
        })
    }
}
