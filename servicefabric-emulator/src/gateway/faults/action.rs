use http::StatusCode;
use serde::{Deserialize, Serialize};

use super::FaultError;
use crate::gateway::wire::{Answer, ApiError};

const HOUR: u64 = 3_600_000;

/// The effect of a fault on a call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "Kind", rename_all_fields = "PascalCase", deny_unknown_fields)]
#[non_exhaustive]
pub enum FaultAction {
    /// The call is rejected with a status and a body in the form of the gateway's.
    Fail {
        /// The status.
        status: u16,
        /// The code, `FABRIC_E_…` or any other text.
        code: String,
        /// The message. Default: a hint at the fault.
        #[serde(default = "asked_for")]
        message: String,
    },
    /// A status and no body.
    Empty {
        /// The status.
        status: u16,
    },
    /// Any text that claims to be JSON.
    Text {
        /// The status.
        status: u16,
        /// The body.
        text: String,
    },
    /// The response is the usual one, but later, in real time.
    Delay {
        /// The delay in milliseconds.
        milliseconds: u64,
    },
    /// The call is carried out, and the connection closed in place of a response.
    Close,
    /// The call is carried out, and the connection closed after half of the body.
    CloseMidAnswer,
    /// The body ends after this number of bytes, as if it were complete.
    Cut {
        /// The number of bytes.
        bytes: usize,
    },
    /// The page has at most this number of items (0 is possible), and a token for the next page.
    ShortPage {
        /// The number of items.
        items: usize,
    },
    /// A page that was requested with a token returns the same token as the next.
    RepeatToken,
}

fn asked_for() -> String {
    "this failure was requested".to_owned()
}

impl FaultAction {
    /// Creates an action that rejects with this status and code.
    pub fn fail(status: u16, code: impl Into<String>) -> Self {
        Self::Fail {
            status,
            code: code.into(),
            message: asked_for(),
        }
    }

    /// Checks that the fault is possible.
    pub(super) fn check(&self) -> Result<(), FaultError> {
        match *self {
            Self::Fail { status, .. } | Self::Empty { status } | Self::Text { status, .. }
                if !(200..600).contains(&status) =>
            {
                Err(FaultError::Status(status))
            }
            Self::Delay { milliseconds } if milliseconds > HOUR => {
                Err(FaultError::Delay(milliseconds))
            }
            _ => Ok(()),
        }
    }

    /// Returns the response that replaces the call, which then is not carried out.
    pub(crate) fn instead(&self) -> Option<Answer> {
        let status_of = |status: u16| {
            StatusCode::from_u16(status).expect("a status was checked when it was injected")
        };
        match self {
            Self::Fail {
                status,
                code,
                message,
            } => Some(Answer::from(ApiError {
                status: status_of(*status),
                code: code.clone().into(),
                message: message.clone(),
            })),
            Self::Empty { status } => Some(Answer::empty(status_of(*status))),
            Self::Text { status, text } => Some(Answer::raw_json(status_of(*status), text.clone())),
            Self::Delay { .. }
            | Self::Close
            | Self::CloseMidAnswer
            | Self::Cut { .. }
            | Self::ShortPage { .. }
            | Self::RepeatToken => None,
        }
    }
}
