//! Where a partition answers.

use crate::cluster::entity::{PartitionInformation, wire_words};
use crate::cluster::{FabricName, PartitionId};

/// What the naming service says about a partition.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ResolvedPartition {
    /// The service.
    pub service: FabricName,
    /// The partition.
    pub partition: PartitionId,
    /// Which keys it has.
    pub information: PartitionInformation,
    /// Its addresses: a primary first.
    pub endpoints: Vec<ResolvedEndpoint>,
    /// The version of this answer.
    pub version: String,
}

/// An address of a partition.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ResolvedEndpoint {
    /// What answers there.
    pub kind: EndpointKind,
    /// The address, as the replica published it.
    pub address: String,
}

/// What answers at an address.
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
