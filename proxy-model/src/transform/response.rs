//! Changes to response headers and trailers.

use http::{HeaderName, HeaderValue, StatusCode};

/// The responses to which a change applies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ResponseCondition {
    /// Status below 400.
    #[default]
    Success,
    /// Status 400 and above, the proxy's own 502 and 504 included.
    Failure,
    /// Every response.
    Always,
}

impl ResponseCondition {
    /// Returns true if a response with `status` meets the condition.
    pub fn holds(self, status: StatusCode) -> bool {
        match self {
            Self::Success => status.as_u16() < 400,
            Self::Failure => status.as_u16() >= 400,
            Self::Always => true,
        }
    }
}

/// The change of one header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HeaderChange {
    /// Replaces all values by this one.
    Set(HeaderName, HeaderValue),
    /// Adds the value after the existing ones.
    Append(HeaderName, HeaderValue),
    /// Removes all values.
    Remove(HeaderName),
}

/// A change to a response's headers or trailers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResponseTransform {
    pub(super) condition: ResponseCondition,
    pub(super) change: HeaderChange,
}

impl ResponseTransform {
    /// The responses to which the change applies.
    pub fn condition(&self) -> ResponseCondition {
        self.condition
    }

    /// The change.
    pub fn change(&self) -> &HeaderChange {
        &self.change
    }
}
