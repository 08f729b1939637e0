//! Responses as bytes, written from encoded resources with one copy.
//!
//! <https://protobuf.dev/programming-guides/encoding/>; field numbers are those of `envoy/service/discovery/v3/discovery.proto`.

use bytes::BufMut;

use super::protocol::{Protocol, Reply};
use crate::snapshot::{Resource, Subscription};

/// A response that only has to be written.
#[derive(Debug, Clone)]
pub(crate) struct Response {
    pub(crate) reply: Reply,
    pub(crate) protocol: Protocol,
    pub(crate) subscription: Subscription,
    /// What the server calls itself; not written if empty.
    pub(crate) identifier: std::sync::Arc<str>,
}

/// The parts of both kinds of response that have other numbers.
struct Numbers {
    type_url: u32,
    nonce: u32,
    control_plane: u32,
}

const VERSION: u32 = 1;
const RESOURCES: u32 = 2;
const REMOVED: u32 = 6;

impl Response {
    /// How many bytes it has.
    pub(crate) fn encoded_len(&self) -> usize {
        let mut count = Count(0);
        self.write(&mut count);
        count.0
    }

    /// Writes `envoy.service.discovery.v3.DiscoveryResponse`, or `DeltaDiscoveryResponse`.
    pub(crate) fn encode(&self, buffer: &mut impl BufMut) {
        self.write(&mut Write(buffer));
    }

    pub(crate) fn encode_to_vec(&self) -> Vec<u8> {
        let mut buffer = Vec::with_capacity(self.encoded_len());
        self.encode(&mut buffer);
        buffer
    }

    fn write(&self, sink: &mut impl Sink) {
        let numbers = match self.protocol {
            Protocol::Sotw => Numbers {
                type_url: 4,
                nonce: 5,
                control_plane: 6,
            },
            Protocol::Delta => Numbers {
                type_url: 4,
                nonce: 5,
                control_plane: 7,
            },
        };
        let type_url = self.reply.resource_type.type_url();
        text(sink, VERSION, &self.reply.version.to_string());
        for resource in &self.reply.resources {
            match self.protocol {
                Protocol::Sotw => {
                    self.any(sink, RESOURCES, resource);
                }
                Protocol::Delta => {
                    let mut length = Count(0);
                    self.resource(&mut length, resource);
                    head(sink, RESOURCES, length.0);
                    self.resource(sink, resource);
                }
            }
        }
        text(sink, numbers.type_url, type_url);
        if self.reply.nonce > 0 {
            text(sink, numbers.nonce, &self.reply.nonce.to_string());
        }
        if self.protocol == Protocol::Delta {
            for name in &self.reply.removed {
                text(sink, REMOVED, name);
            }
        }
        if !self.identifier.is_empty() {
            const IDENTIFIER: u32 = 1;
            let mut length = Count(0);
            text(&mut length, IDENTIFIER, &self.identifier);
            head(sink, numbers.control_plane, length.0);
            text(sink, IDENTIFIER, &self.identifier);
        }
    }

    /// `envoy.service.discovery.v3.Resource`.
    fn resource(&self, sink: &mut impl Sink, resource: &Resource) {
        const RESOURCE_VERSION: u32 = 1;
        const RESOURCE: u32 = 2;
        const NAME: u32 = 3;
        text(sink, RESOURCE_VERSION, &resource.version().to_string());
        self.any(sink, RESOURCE, resource);
        text(sink, NAME, resource.name());
    }

    /// `google.protobuf.Any`.
    fn any(&self, sink: &mut impl Sink, number: u32, resource: &Resource) {
        const TYPE_URL: u32 = 1;
        const VALUE: u32 = 2;
        let type_url = self.reply.resource_type.type_url();
        let body = resource.body(self.subscription);
        let mut length = Count(0);
        text(&mut length, TYPE_URL, type_url);
        field(&mut length, VALUE, body);
        head(sink, number, length.0);
        text(sink, TYPE_URL, type_url);
        field(sink, VALUE, body);
    }
}

trait Sink {
    fn put(&mut self, bytes: &[u8]);
}

struct Count(usize);

impl Sink for Count {
    fn put(&mut self, bytes: &[u8]) {
        self.0 += bytes.len();
    }
}

struct Write<'a, B>(&'a mut B);

impl<B: BufMut> Sink for Write<'_, B> {
    fn put(&mut self, bytes: &[u8]) {
        self.0.put_slice(bytes);
    }
}

fn text(sink: &mut impl Sink, number: u32, value: &str) {
    field(sink, number, value.as_bytes());
}

fn field(sink: &mut impl Sink, number: u32, value: &[u8]) {
    head(sink, number, value.len());
    sink.put(value);
}

/// The key and length of a field that is delimited by its length.
fn head(sink: &mut impl Sink, number: u32, length: usize) {
    const LENGTH_DELIMITED: u32 = 2;
    varint(sink, u64::from(number << 3 | LENGTH_DELIMITED));
    varint(sink, length as u64);
}

fn varint(sink: &mut impl Sink, mut value: u64) {
    while value >= 0x80 {
        sink.put(&[(value & 0x7f) as u8 | 0x80]);
        value >>= 7;
    }
    sink.put(&[value as u8]);
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use envoy_types::pb::envoy::config::core::v3::ControlPlane;
    use envoy_types::pb::envoy::service::discovery::v3 as discovery;
    use envoy_types::pb::google::protobuf::Any;
    use prost::Message;

    use super::*;
    use crate::server::fixtures::resource;
    use crate::snapshot::ResourceType;

    fn response(protocol: Protocol) -> Response {
        let long = "x".repeat(300);
        let resources = vec![resource("a", "1"), resource("b", &long)];
        Response {
            reply: Reply {
                resource_type: ResourceType::Endpoint,
                version: resources[0].version(),
                nonce: 300,
                resources,
                removed: vec![Arc::from("gone")],
            },
            protocol,
            subscription: Subscription::Aggregated,
            identifier: Arc::from("us"),
        }
    }

    fn any(resource: &Resource) -> Any {
        Any {
            type_url: ResourceType::Endpoint.type_url().to_owned(),
            value: resource.body(Subscription::Aggregated).to_vec(),
        }
    }

    fn control_plane() -> Option<ControlPlane> {
        Some(ControlPlane {
            identifier: "us".to_owned(),
        })
    }

    #[test]
    fn state_of_the_world_is_what_other_encoders_write() {
        let response = response(Protocol::Sotw);
        let bytes = response.encode_to_vec();
        assert_eq!(bytes.len(), response.encoded_len());
        let read = discovery::DiscoveryResponse::decode(bytes.as_slice()).unwrap();
        let expected = discovery::DiscoveryResponse {
            version_info: response.reply.version.to_string(),
            resources: response.reply.resources.iter().map(|r| any(r)).collect(),
            type_url: ResourceType::Endpoint.type_url().to_owned(),
            nonce: "300".to_owned(),
            control_plane: control_plane(),
            ..Default::default()
        };
        assert_eq!(read, expected);
        assert_eq!(bytes, expected.encode_to_vec());
    }

    #[test]
    fn the_incremental_response_is_what_other_encoders_read() {
        let response = response(Protocol::Delta);
        let bytes = response.encode_to_vec();
        assert_eq!(bytes.len(), response.encoded_len());
        let read = discovery::DeltaDiscoveryResponse::decode(bytes.as_slice()).unwrap();
        let resources = response.reply.resources.iter();
        let expected = discovery::DeltaDiscoveryResponse {
            system_version_info: response.reply.version.to_string(),
            resources: resources
                .map(|resource| discovery::Resource {
                    name: resource.name().to_string(),
                    version: resource.version().to_string(),
                    resource: Some(any(resource)),
                    ..Default::default()
                })
                .collect(),
            type_url: ResourceType::Endpoint.type_url().to_owned(),
            nonce: "300".to_owned(),
            removed_resources: vec!["gone".to_owned()],
            control_plane: control_plane(),
            ..Default::default()
        };
        assert_eq!(read, expected);
    }

    #[test]
    fn what_is_empty_is_not_written() {
        let mut response = response(Protocol::Sotw);
        response.identifier = Arc::from("");
        response.reply.nonce = 0;
        response.reply.resources.clear();
        let read =
            discovery::DiscoveryResponse::decode(response.encode_to_vec().as_slice()).unwrap();
        assert_eq!(read.nonce, "");
        assert_eq!(read.control_plane, None);
    }
}
