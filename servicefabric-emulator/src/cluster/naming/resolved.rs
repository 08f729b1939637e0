//! The result of resolving a partition.

use crate::cluster::entity::{PartitionInformation, wire_words};
use crate::cluster::{FabricName, PartitionId};

/// A partition as the naming service resolves it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ResolvedPartition {
    /// The service.
    pub service: FabricName,
    /// The partition.
    pub partition: PartitionId,
    /// The keys of the partition.
    pub information: PartitionInformation,
    /// The endpoints, a primary first.
    pub endpoints: Vec<ResolvedEndpoint>,
    /// The version of this answer.
    pub version: String,
}

/// An address of a partition.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ResolvedEndpoint {
    /// The kind of replica behind the address.
    pub kind: EndpointKind,
    /// The address, as the replica published it.
    pub address: String,
}

/// The kind of replica behind an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum EndpointKind {
    /// An instance of a stateless service.
    Stateless,
    /// The primary of a stateful service.
    StatefulPrimary,
    /// A secondary of a stateful service.
    StatefulSecondary,
}

wire_words!(EndpointKind {
    Stateless = "Stateless",
    StatefulPrimary = "StatefulPrimary",
    StatefulSecondary = "StatefulSecondary",
});
