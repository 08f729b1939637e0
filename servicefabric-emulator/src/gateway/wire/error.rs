use std::borrow::Cow;

use http::StatusCode;
use serde::Serialize;

use crate::cluster::{ErrorCode, FabricError};

/// The error response of a call: the status line and the body `{"Error":{"Code","Message"}}`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ApiError {
    pub(crate) status: StatusCode,
    pub(crate) code: Cow<'static, str>,
    pub(crate) message: String,
}

impl ApiError {
    /// Creates an error whose status follows from its code.
    pub(crate) fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self {
            status: StatusCode::from_u16(code.http_status())
                .unwrap_or(StatusCode::INTERNAL_SERVER_ERROR),
            code: Cow::Borrowed(code.as_str()),
            message: message.into(),
        }
    }

    /// Creates an error about a request that the gateway does not understand.
    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::InvalidArgument, message)
    }

    /// Creates the error of a missing query argument.
    pub(crate) fn missing(argument: &str) -> Self {
        Self::invalid(format!("required parameter is missing: {argument}"))
    }

    /// Creates the error of a response that could not be written as JSON.
    pub(crate) fn unwritable(error: &serde_json::Error) -> Self {
        Self {
            code: Cow::Borrowed("SerializationError"),
            ..Self::new(ErrorCode::Fail, error.to_string())
        }
    }

    /// Returns the JSON body.
    pub(crate) fn body(&self) -> Vec<u8> {
        #[derive(Serialize)]
        #[serde(rename_all = "PascalCase")]
        struct Body<'a> {
            error: Inner<'a>,
        }
        #[derive(Serialize)]
        #[serde(rename_all = "PascalCase")]
        struct Inner<'a> {
            code: &'a str,
            message: &'a str,
        }
        let body = Body {
            error: Inner {
                code: &self.code,
                message: &self.message,
            },
        };
        serde_json::to_vec(&body).expect("two strings are always JSON")
    }
}

impl From<FabricError> for ApiError {
    fn from(error: FabricError) -> Self {
        Self::new(error.code, error.message)
    }
}
