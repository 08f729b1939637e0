use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderValue, WWW_AUTHENTICATE};
use http::{HeaderMap, HeaderName, StatusCode};
use serde::Serialize;

use super::ApiError;

const JSON: HeaderValue = HeaderValue::from_static("application/json; charset=utf-8");
const CONTENT_TYPE_OPTIONS: HeaderName = HeaderName::from_static("x-content-type-options");

/// A response before any fault is applied.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Answer {
    /// Creates a response 200 with this value as JSON.
    ///
    /// # Errors
    ///
    /// `SerializationError` when the value cannot be written, which no shape of this crate does.
    pub(crate) fn json(value: &impl Serialize) -> Result<Self, ApiError> {
        let body = serde_json::to_vec(value).map_err(|error| ApiError::unwritable(&error))?;
        Ok(Self::raw_json(StatusCode::OK, body))
    }

    /// Creates a response from a text that is already JSON.
    pub(crate) fn raw_json(status: StatusCode, body: impl Into<Bytes>) -> Self {
        let mut answer = Self::empty(status);
        answer.headers.insert(CONTENT_TYPE, JSON);
        answer.body = body.into();
        answer
    }

    /// Creates a response with the entity, or 204 without one.
    ///
    /// # Errors
    ///
    /// Those of [`json`](Self::json).
    pub(crate) fn entity(value: Option<impl Serialize>) -> Result<Self, ApiError> {
        match value {
            Some(value) => Self::json(&value),
            None => Ok(Self::empty(StatusCode::NO_CONTENT)),
        }
    }

    /// Creates a response without a body.
    pub(crate) fn empty(status: StatusCode) -> Self {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        Self {
            status,
            headers,
            body: Bytes::new(),
        }
    }

    /// Creates a response 200 without a body.
    pub(crate) fn done() -> Self {
        Self::empty(StatusCode::OK)
    }

    /// Adds the challenge for authentication.
    pub(crate) fn challenge(mut self, challenge: HeaderValue) -> Self {
        self.headers.insert(WWW_AUTHENTICATE, challenge);
        self
    }
}

impl From<ApiError> for Answer {
    fn from(error: ApiError) -> Self {
        Self::raw_json(error.status, error.body())
    }
}
