//! The model's own form beside Envoy's: the original of a resource, in its metadata.

use serde::Serialize;
use xds_types::carried::{self, Sealable};

/// Writes the JSON form of `value` into the metadata of `resource`, sealed.
pub(super) fn carry<R: Sealable, T: Serialize>(resource: &mut R, value: &T) {
    if let Ok(json) = serde_json::to_string(value) {
        carried::carry(resource, &json);
    }
}
