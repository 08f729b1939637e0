//! Changes to the trailers of responses.

use http::{HeaderMap, StatusCode};
use proxy_model::transform::{HeaderCopy, ResponseTransform, Transforms};

use super::response::{change, copy};

/// Changes of response trailers.
#[derive(Debug)]
pub(crate) struct TrailerPlan {
    copy: HeaderCopy,
    changes: Box<[ResponseTransform]>,
}

impl TrailerPlan {
    /// `None`: trailers stay as they are.
    pub(crate) fn of(transforms: &Transforms) -> Option<Self> {
        let (copy, changes) = (transforms.trailers_copy(), transforms.trailers());
        let is_unchanged = changes.is_empty() && *copy == HeaderCopy::All;
        (!is_unchanged).then(|| Self {
            copy: copy.clone(),
            changes: changes.into(),
        })
    }

    /// Makes of a destination's trailers, behind a response of this status, those that the client gets.
    pub(crate) fn apply(&self, status: StatusCode, trailers: &mut HeaderMap) {
        copy(&self.copy, trailers);
        change(&self.changes, status, trailers);
    }
}
