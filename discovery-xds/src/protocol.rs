//! Subscriptions and acknowledgements of one stream, for both variants of the protocol.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use xds_types::pb::envoy::config::core::v3::Node;
use xds_types::pb::envoy::service::discovery::v3::{
    DeltaDiscoveryRequest, DeltaDiscoveryResponse, DiscoveryRequest, DiscoveryResponse,
};
use xds_types::pb::google::rpc::Status;

use super::Mode;
use super::store::Store;
use super::table::{Sent, Update};
use xds_types::ResourceType;

/// The code of NACKs: `INVALID_ARGUMENT`.
const INVALID_ARGUMENT: i32 = 3;

/// A request of either variant.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Request {
    Full(DiscoveryRequest),
    Delta(DeltaDiscoveryRequest),
}

/// A response of either variant.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) type_url: String,
    pub(super) nonce: String,
    pub(super) version: String,
    pub(super) update: Update,
}

impl From<DiscoveryResponse> for Answer {
    fn from(response: DiscoveryResponse) -> Self {
        let resource_type = ResourceType::from_type_url(&response.type_url);
        let version = response.version_info;
        Self {
            update: Update {
                resources: (response.resources.into_iter())
                    .map(|content| Sent {
                        name: None,
                        version: version.clone(),
                        content,
                    })
                    .collect(),
                removed: Vec::new(),
                is_all: resource_type.is_some_and(ResourceType::has_wildcard),
            },
            type_url: response.type_url,
            nonce: response.nonce,
            version,
        }
    }
}

impl From<DeltaDiscoveryResponse> for Answer {
    fn from(response: DeltaDiscoveryResponse) -> Self {
        let resources = response.resources.into_iter();
        Self {
            update: Update {
                // A resource without content has not changed.
                resources: resources
                    .filter_map(|sent| {
                        Some(Sent {
                            name: Some(sent.name),
                            version: sent.version,
                            content: sent.resource?,
                        })
                    })
                    .collect(),
                removed: response.removed_resources,
                is_all: false,
            },
            type_url: response.type_url,
            nonce: response.nonce,
            version: response.system_version_info,
        }
    }
}

/// The state of one type on a stream.
#[derive(Debug, Default)]
struct Subscribed {
    /// The version that was accepted last, on this stream.
    version: String,
    nonce: String,
    /// The names that were requested.
    names: BTreeSet<String>,
}

/// One stream.
#[derive(Debug)]
pub(super) struct Stream {
    mode: Mode,
    /// Sent with the first request.
    node: Option<Node>,
    subscribed: BTreeMap<ResourceType, Subscribed>,
}

impl Stream {
    pub(super) fn new(mode: Mode, node: Node) -> Self {
        Self {
            mode,
            node: Some(node),
            subscribed: BTreeMap::new(),
        }
    }

    /// Returns the requests with which the protocol begins.
    pub(super) fn begin(&mut self, store: &Store) -> Vec<Request> {
        store
            .types()
            .filter_map(|kind| self.subscribe(kind, store))
            .collect()
    }

    /// Returns the requests that follow a response: its ACK or NACK, and requests for further resources.
    pub(super) fn answered(
        &mut self,
        kind: ResourceType,
        nonce: String,
        version: String,
        rejection: Option<String>,
        store: &Store,
    ) -> Vec<Request> {
        let subscribed = self.subscribed.entry(kind).or_default();
        subscribed.nonce = nonce;
        if rejection.is_none() {
            subscribed.version = version;
        }
        let error_detail = rejection.map(|message| Status {
            code: INVALID_ARGUMENT,
            message,
            ..Status::default()
        });
        let mut requests = vec![match self.mode {
            Mode::StateOfTheWorld => Request::Full(DiscoveryRequest {
                version_info: subscribed.version.clone(),
                resource_names: subscribed.names.iter().cloned().collect(),
                type_url: kind.type_url().to_owned(),
                response_nonce: subscribed.nonce.clone(),
                error_detail,
                node: self.node.take(),
                ..DiscoveryRequest::default()
            }),
            Mode::Delta => Request::Delta(DeltaDiscoveryRequest {
                type_url: kind.type_url().to_owned(),
                response_nonce: subscribed.nonce.clone(),
                error_detail,
                node: self.node.take(),
                ..DeltaDiscoveryRequest::default()
            }),
        }];
        requests.extend(store.types().filter_map(|kind| self.subscribe(kind, store)));
        requests
    }

    /// Returns a request for needed resources that were not requested yet, if there are any.
    fn subscribe(&mut self, kind: ResourceType, store: &Store) -> Option<Request> {
        let wanted = store.wanted(kind);
        let is_first = !self.subscribed.contains_key(&kind);
        let names = wanted.unwrap_or_default();
        if is_first && names.is_empty() && !kind.has_wildcard() {
            return None;
        }
        let subscribed = self.subscribed.entry(kind).or_default();
        if !is_first && names == subscribed.names {
            return None;
        }
        let more: Vec<String> = names.difference(&subscribed.names).cloned().collect();
        let fewer: Vec<String> = subscribed.names.difference(&names).cloned().collect();
        subscribed.names = names;
        Some(match self.mode {
            Mode::StateOfTheWorld => Request::Full(DiscoveryRequest {
                version_info: subscribed.version.clone(),
                resource_names: subscribed.names.iter().cloned().collect(),
                type_url: kind.type_url().to_owned(),
                response_nonce: subscribed.nonce.clone(),
                node: self.node.take(),
                ..DiscoveryRequest::default()
            }),
            Mode::Delta => Request::Delta(DeltaDiscoveryRequest {
                type_url: kind.type_url().to_owned(),
                resource_names_subscribe: more,
                resource_names_unsubscribe: fewer,
                // So that only what differs is sent after a reconnect.
                initial_resource_versions: match is_first {
                    true => store.versions(kind).into_iter().collect(),
                    false => HashMap::new(),
                },
                node: self.node.take(),
                ..DeltaDiscoveryRequest::default()
            }),
        })
    }
}
