//! The accepted resources that a restart needs, as text.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use prost::Message as _;
use xds_types::pb::envoy::service::discovery::v3::DiscoveryResponse;
use xds_types::pb::google::protobuf::Any;

/// Returns resources as text.
pub(super) fn encode(resources: Vec<Any>) -> Arc<str> {
    let response = DiscoveryResponse {
        resources,
        ..DiscoveryResponse::default()
    };
    STANDARD.encode(response.encode_to_vec()).into()
}

/// Returns the resources in a text.
pub(super) fn decode(memo: &str) -> Result<Vec<Any>, String> {
    let bytes = STANDARD.decode(memo).map_err(|error| error.to_string())?;
    let response =
        DiscoveryResponse::decode(bytes.as_slice()).map_err(|error| error.to_string())?;
    Ok(response.resources)
}
