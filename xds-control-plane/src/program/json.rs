//! Resources as canonical JSON.

use program_kit::Failure;
use prost_reflect::{DescriptorPool, DynamicMessage, SerializeOptions};
use serde_json::Value;
use xds_control_plane::server::ENVOY_DESCRIPTORS;
use xds_control_plane::snapshot::{Resource, ResourceType, Subscription};

/// The writer of JSON, by message descriptors.
pub(super) struct JsonWriter(DescriptorPool);

impl JsonWriter {
    pub(super) fn new() -> Result<Self, Failure> {
        let pool = DescriptorPool::decode(ENVOY_DESCRIPTORS);
        pool.map(Self).map_err(|error| Failure::from_error(&error))
    }

    /// A resource, with its type, as it would be inside an `Any`.
    pub(super) fn resource(
        &self,
        kind: ResourceType,
        resource: &Resource,
        via: Subscription,
    ) -> Result<Value, Failure> {
        let url = kind.type_url();
        let name = url.rsplit('/').next().unwrap_or(url);
        let descriptor = self.0.get_message_by_name(name);
        let descriptor =
            descriptor.ok_or_else(|| Failure::new(format!("{name} is not described")))?;
        let message = DynamicMessage::decode(descriptor, resource.body(via).clone())
            .map_err(|error| Failure::from_error(&error))?;
        let mut written = message
            .serialize_with_options(serde_json::value::Serializer, &SerializeOptions::new())
            .map_err(|error| Failure::from_error(&error))?;
        if let Value::Object(fields) = &mut written {
            fields.insert("@type".to_owned(), url.into());
        }
        Ok(written)
    }
}
