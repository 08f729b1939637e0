//! The calls of the REST API: their requests to the cluster, and their responses.

mod application;
mod application_type;
mod body;
mod cluster;
mod deployed;
mod health;
mod image_store;
mod name;
mod node;
mod partition;
mod replica;
mod report;
mod service;
mod upgrade;

use std::sync::Arc;

use serde::de::DeserializeOwned;

use super::admin;
use super::emulator::Shared;
use super::route::{Parameters, Route};
use super::shapes::word;
use super::wire::{ApiError, ApiVersion, Arguments, PageFaults, Paging, parse_replica_id};
use crate::cluster::{Cluster, FabricName, PartitionId, ReplicaRef};
use crate::health::EntityKey;

/// The context of a call.
pub(crate) struct Call<'a> {
    /// The cluster, at the present moment.
    pub(crate) cluster: &'a mut Cluster,
    /// The state around the cluster.
    pub(crate) shared: &'a Shared,
    /// The parameters of the path template.
    pub(crate) parameters: Parameters,
    /// The arguments of the query.
    pub(crate) arguments: Arguments,
    /// The API version of the response.
    pub(crate) version: ApiVersion,
    /// The body of the request. Empty for uploads larger than the limit of a body.
    pub(crate) body: &'a [u8],
    /// The size of the body in bytes.
    pub(crate) size: u64,
    /// The injected faults of paging.
    pub(crate) pages: PageFaults,
}

/// The tables of all calls.
pub(super) fn tables() -> [&'static [Route]; 14] {
    [
        cluster::ROUTES,
        node::ROUTES,
        application_type::ROUTES,
        application::ROUTES,
        upgrade::ROUTES,
        service::ROUTES,
        partition::ROUTES,
        replica::ROUTES,
        deployed::ROUTES,
        name::ROUTES,
        image_store::ROUTES,
        health::ROUTES,
        report::ROUTES,
        admin::ROUTES,
    ]
}

/// Parses a body as JSON. Some writers put a byte order mark before it, which a reader may ignore (RFC 8259,
/// section 8.1).
///
/// # Errors
///
/// `E_INVALIDARG` with the parse error.
pub(crate) fn read_json<T: DeserializeOwned>(body: &[u8]) -> Result<T, ApiError> {
    let body = body.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(body);
    if body.trim_ascii_start().starts_with(b"[") {
        // A list would be taken for the members of the object, in the order in which they are declared here.
        return Err(ApiError::invalid(
            "the body cannot be read: it is a list, expected an object",
        ));
    }
    serde_json::from_slice(body)
        .map_err(|error| ApiError::invalid(format!("the body cannot be read: {error}")))
}

impl Call<'_> {
    /// Returns the value of a path parameter.
    pub(crate) fn at(&self, place: &str) -> &str {
        self.parameters.get(place)
    }

    /// Returns the name whose id is at this place.
    ///
    /// # Errors
    ///
    /// `FABRIC_E_INVALID_NAME_URI` if no name has this id.
    pub(crate) fn name(&self, place: &str) -> Result<FabricName, ApiError> {
        Ok(FabricName::from_id(self.at(place))?)
    }

    /// Returns the node of the path, which must exist.
    ///
    /// # Errors
    ///
    /// `FABRIC_E_NODE_NOT_FOUND`.
    pub(crate) fn node(&self) -> Arc<str> {
        self.at("node").into()
    }

    /// Returns the partition of the path.
    ///
    /// # Errors
    ///
    /// `E_INVALIDARG` if it is not a GUID.
    pub(crate) fn partition(&self) -> Result<PartitionId, ApiError> {
        Ok(self.at("partition").parse()?)
    }

    /// Returns the replica of the path.
    ///
    /// # Errors
    ///
    /// `E_INVALIDARG` for ids that are none.
    pub(crate) fn replica(&self) -> Result<ReplicaRef, ApiError> {
        Ok(ReplicaRef {
            partition: self.partition()?,
            replica: parse_replica_id(self.at("replica"))?,
        })
    }

    /// Parses the body as JSON.
    ///
    /// # Errors
    ///
    /// `E_INVALIDARG` with the parse error.
    pub(crate) fn json<T: DeserializeOwned>(&self) -> Result<T, ApiError> {
        read_json(self.body)
    }

    /// Parses the body as JSON. `None` if it is empty.
    ///
    /// # Errors
    ///
    /// As for [`json`](Self::json).
    pub(crate) fn json_or_nothing<T: DeserializeOwned>(&self) -> Result<Option<T>, ApiError> {
        if self.body.iter().all(u8::is_ascii_whitespace) {
            return Ok(None);
        }
        self.json().map(Some)
    }

    /// Returns the paging of a call that honours `MaxResults`.
    ///
    /// # Errors
    ///
    /// `E_INVALIDARG` for a bad `MaxResults`.
    pub(crate) fn paging(&self) -> Result<Paging, ApiError> {
        Paging::of(self.version, &self.arguments, true, self.pages)
    }

    /// Returns the paging of a call that ignores `MaxResults`.
    ///
    /// # Errors
    ///
    /// As for [`paging`](Self::paging).
    pub(crate) fn paging_by_token(&self) -> Result<Paging, ApiError> {
        Paging::of(self.version, &self.arguments, false, self.pages)
    }

    /// Returns the aggregated health of an entity as a word.
    pub(crate) fn health_word(&self, entity: &EntityKey) -> &'static str {
        word(self.cluster.health_state(entity))
    }
}
