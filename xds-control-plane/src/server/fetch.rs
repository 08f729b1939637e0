//! Single responses: unary calls and polls.

use std::collections::BTreeSet;
use std::sync::Arc;

use xds_types::pb::envoy::service::discovery::v3::DiscoveryRequest;

use super::context::Context;
use super::nodes::NodeIdentity;
use super::protocol::{Reply, StreamProtocol, WILDCARD};
use super::wire::Response;
use crate::snapshot::{Resource, ResourceType, Subscription, Version};

/// The result of a call.
#[derive(Debug)]
pub(crate) struct Fetched {
    pub(crate) response: Response,
    /// True if the client has that version, so that the response is empty.
    pub(crate) is_unchanged: bool,
}

/// The reason why there is no response.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum FetchError {
    #[error("no source has been read yet; retry in a moment")]
    NotReady,
    #[error(
        "this is asked for resources of the type {asked}, and has those of the type {has} only"
    )]
    OtherType { asked: String, has: &'static str },
    #[error("a request may name {limit} resources")]
    TooManyNames { limit: usize },
}

/// Responds to `request`. Without names, or with the wildcard, it requests all resources, including
/// endpoints and routes.
pub(crate) fn fetch(
    context: &Context,
    resource_type: ResourceType,
    subscription: Subscription,
    request: &DiscoveryRequest,
) -> Result<Fetched, FetchError> {
    if !request.type_url.is_empty() && request.type_url != resource_type.type_url() {
        return Err(FetchError::OtherType {
            asked: super::nodes::clean(&request.type_url, 256),
            has: resource_type.type_url(),
        });
    }
    let limit = context.options.names_per_stream;
    if request.resource_names.len() > limit {
        return Err(FetchError::TooManyNames { limit });
    }
    let view = context.view().ok_or(FetchError::NotReady)?;
    context.metrics.fetched(resource_type, subscription);
    let names: BTreeSet<&str> = request.resource_names.iter().map(String::as_str).collect();
    let mut resources: Vec<Arc<Resource>> = if names.is_empty() || names.contains(WILDCARD) {
        view.all(resource_type, subscription).cloned().collect()
    } else {
        let found = names
            .iter()
            .filter_map(|name| view.get(resource_type, subscription, name));
        found.cloned().collect()
    };
    let version = resources
        .iter()
        .fold(Version::default(), |version, resource| {
            version.with(resource.name(), resource.version())
        });
    let had = request.version_info.parse().ok();
    let is_unchanged = had == Some(version);
    if let Some(node) = &request.node {
        let node = NodeIdentity::new(node);
        let nodes = &context.nodes;
        nodes.polled(node, resource_type, subscription, had, version);
    }
    if is_unchanged {
        resources.clear();
    }
    Ok(Fetched {
        response: Response {
            reply: Reply {
                resource_type,
                version,
                nonce: 0,
                resources,
                removed: Vec::new(),
            },
            protocol: StreamProtocol::Sotw,
            subscription,
            identifier: Arc::clone(&context.identifier),
        },
        is_unchanged,
    })
}
