//! Changes to response headers.

use http::{HeaderMap, StatusCode};
use proxy_model::transform::{HeaderChange, ResponseTransform, Transforms};

/// Applies the changes of a route to a local reply, in order.
pub(crate) fn apply_to_own_response(
    transforms: &Transforms,
    status: StatusCode,
    headers: &mut HeaderMap,
) {
    change(transforms.response(), status, headers);
}

/// Applies the changes for responses with this status, in order.
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
            HeaderChange::Append(name, value) => {
                // The limit of the map is 32,768 fields.
                let _ = headers.try_append(name, value.clone());
            }
            HeaderChange::Remove(name) => {
                headers.remove(name);
            }
        }
    }
}
