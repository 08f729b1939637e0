use std::sync::Arc;

use prost::Message;
use xds_types::pb::envoy::config::core::v3::Node;
use xds_types::pb::envoy::service::discovery::v3::{DeltaDiscoveryRequest, DiscoveryRequest};

use crate::server::protocol::{Request, StreamProtocol, Wants};

/// A request of either protocol, as it comes in.
pub(super) trait Inbound: Message + Default + Send + 'static {
    const PROTOCOL: StreamProtocol;
    /// The fields that are lists of names.
    const NAMES: &'static [u64];

    fn node(&self) -> Option<&Node>;
    fn type_url(&self) -> &str;
    /// Returns all subscribed names, if every request of the protocol contains them.
    fn all_names(&self) -> Option<&[String]>;
    /// Converts the message to a request, with names passed through `intern`. If all names are those of the
    /// previous request, they are left out.
    fn into_request(self, is_unchanged: bool, intern: impl Fn(&str) -> Arc<str>) -> Request;
}

impl Inbound for DiscoveryRequest {
    const PROTOCOL: StreamProtocol = StreamProtocol::Sotw;
    /// `resource_names` and `resource_locators`.
    const NAMES: &'static [u64] = &[3, 7];

    fn node(&self) -> Option<&Node> {
        self.node.as_ref()
    }

    fn type_url(&self) -> &str {
        &self.type_url
    }

    fn all_names(&self) -> Option<&[String]> {
        Some(&self.resource_names)
    }

    fn into_request(self, is_unchanged: bool, intern: impl Fn(&str) -> Arc<str>) -> Request {
        let names = self.resource_names.iter();
        Request {
            nonce: self.response_nonce,
            rejection: self.error_detail.map(|error| error.message),
            wants: match is_unchanged {
                true => Wants::Unchanged,
                false => Wants::Sotw {
                    names: names.map(|name| intern(name)).collect(),
                    version: self.version_info.parse().ok(),
                },
            },
        }
    }
}

impl Inbound for DeltaDiscoveryRequest {
    const PROTOCOL: StreamProtocol = StreamProtocol::Delta;
    /// The fields `resource_names_subscribe`, `resource_names_unsubscribe`, `initial_resource_versions` and
    /// the two lists of locators.
    const NAMES: &'static [u64] = &[3, 4, 5, 8, 9];

    fn node(&self) -> Option<&Node> {
        self.node.as_ref()
    }

    fn type_url(&self) -> &str {
        &self.type_url
    }

    fn all_names(&self) -> Option<&[String]> {
        None
    }

    fn into_request(self, _: bool, intern: impl Fn(&str) -> Arc<str>) -> Request {
        let all = |names: &[String]| names.iter().map(|name| intern(name)).collect();
        Request {
            nonce: self.response_nonce,
            rejection: self.error_detail.map(|error| error.message),
            wants: Wants::Delta {
                subscribe: all(&self.resource_names_subscribe),
                unsubscribe: all(&self.resource_names_unsubscribe),
                initial: self
                    .initial_resource_versions
                    .iter()
                    .map(|(name, version)| (intern(name), version.parse().ok()))
                    .collect(),
            },
        }
    }
}
