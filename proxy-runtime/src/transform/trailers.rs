//! Changes to the trailers of responses.

use http::{HeaderMap, HeaderName, StatusCode};
use proxy_model::transform::{HeaderCopy, Transforms};

use super::operation::{ResponseOperation, response_operation};
use crate::head::headers;

/// Changes of response trailers.
#[derive(Debug)]
pub(crate) struct TrailerPlan {
    copy: HeaderCopy,
    changes: Box<[ResponseOperation]>,
}

impl TrailerPlan {
    /// Creates the plan. `None`: trailers stay unchanged.
    pub(crate) fn of(transforms: &Transforms) -> Option<Self> {
        let changes = transforms.trailers().iter().filter_map(response_operation);
        let (copy, changes) = (transforms.trailers_copy(), changes.collect::<Box<[_]>>());
        let is_unchanged = changes.is_empty() && *copy == HeaderCopy::All;
        (!is_unchanged).then(|| Self {
            copy: copy.clone(),
            changes,
        })
    }

    /// Converts a destination's trailers, after a response with this status, to the client's.
    pub(crate) fn apply(&self, status: StatusCode, trailers: &mut HeaderMap) {
        copy(&self.copy, trailers);
        for change in &self.changes {
            change.apply(status, trailers);
        }
    }
}

/// Keeps the fields that may be sent on.
fn copy(copy: &HeaderCopy, fields: &mut HeaderMap) {
    match copy {
        HeaderCopy::All => headers::strip_hop_by_hop(fields),
        HeaderCopy::None => fields.clear(),
        HeaderCopy::Only(names) => {
            // Fields that `Connection` names are not for the client, even if the route lists them.
            headers::strip_named(fields);
            let is_unwanted = |name: &&HeaderName| !names.contains(name);
            let unwanted: Vec<_> = fields.keys().filter(is_unwanted).cloned().collect();
            for name in unwanted {
                fields.remove(name);
            }
            headers::strip_framing(fields);
        }
    }
}
