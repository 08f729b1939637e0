//! Changes to response headers.

use http::{HeaderMap, StatusCode};
use proxy_model::transform::{HeaderChange, HeaderCopy, ResponseTransform, Transforms};

use super::request::{append, retain};
use crate::head::headers;

/// Makes the changes to a response that the proxy makes itself, for want of one of a destination.
pub(crate) fn apply_to_own_response(
    transforms: &Transforms,
    status: StatusCode,
    headers: &mut HeaderMap,
) {
    change(transforms.response(), status, headers);
}

/// Keeps the headers that may be sent on.
pub(super) fn copy(copy: &HeaderCopy, fields: &mut HeaderMap) {
    match copy {
        HeaderCopy::All => headers::strip_hop_by_hop(fields),
        HeaderCopy::None => fields.clear(),
        HeaderCopy::Only(names) => {
            // Fields that `Connection` names are not for the client, even if the route lists them.
            headers::strip_named(fields);
            retain(fields, names);
            headers::strip_framing(fields);
        }
    }
}

/// Makes the changes that are made to responses of this status, in order.
pub(super) fn change(
    transforms: &[ResponseTransform],
    status: StatusCode,
    headers: &mut HeaderMap,
) {
    for transform in transforms {
        if !transform.condition().holds(status) {
            continue;
        }
        match transform.change() {
            HeaderChange::Set(name, value) => {
                headers.insert(name, value.clone());
            }
            HeaderChange::Append(name, value) => append(headers, name, value.clone()),
            HeaderChange::Remove(name) => {
                headers.remove(name);
            }
        }
    }
}
